"""The method's ports on the real things: databases that several questions share, and the judge that knows the gold."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from orchestrator.bootstrap.sql.data import view_of
from orchestrator.bootstrap.sql.databases import Place
from orchestrator.domain.sql import QueryResult, Question
from orchestrator.domain.sql_results import result_from_bytes
from orchestrator.errors import RunStateError
from orchestrator.evaluation.databases import Domain, SandboxDatabase
from orchestrator.evaluation.sql_judge import Asked, Metric, SqlJudge
from orchestrator.methods.robophd.ports import Judged
from orchestrator.ports import Database, Journal
from orchestrator.sql.differences import difference

NO_QUERY = "there is no query"


class SharedDatabases:
    """`robophd.ports.Databases` on real containers: open from the first user to the last. Thread-safe."""

    def __init__(self, place: Place) -> None:
        """Nothing is open yet."""
        self._place = place
        self._locks = {name: threading.Lock() for name in place.paths}  # guard _open and _users of one name
        self._users = dict.fromkeys(place.paths, 0)
        self._open: dict[str, tuple[AbstractContextManager[SandboxDatabase], SandboxDatabase]] = {}

    @contextmanager
    def open(self, name: str) -> Iterator[Database]:
        """As `robophd.ports.Databases`."""
        if name not in self._locks:
            msg = f"the run has no database {name!r}; it has {', '.join(self._locks)}"
            raise RunStateError(msg)
        with self._locks[name]:
            if name not in self._open:
                manager = self._place.open(name, Domain.PREDICTED)
                self._open[name] = (manager, manager.__enter__())
            self._users[name] += 1
            database = self._open[name][1]
        try:
            yield database
        except BaseException as error:
            self._leave(name, error)
            raise
        self._leave(name, None)

    def _leave(self, name: str, error: BaseException | None) -> None:
        with self._locks[name]:
            self._users[name] -= 1
            if self._users[name] == 0:
                manager, _ = self._open.pop(name)
                if error is None:
                    manager.__exit__(None, None, None)
                else:
                    manager.__exit__(type(error), error, error.__traceback__)


class JournalJudge:
    """`robophd.ports.ContestJudge` on recorded results. Thread-safe as its journal is."""

    def __init__(self, judge: SqlJudge, journal: Journal, questions: Mapping[str, Question]) -> None:
        """Nothing is read yet.

        Args:
            judge: Of the run.
            journal: Of the run.
            questions: By id; those that can be evaluated.
        """
        self._judge = judge
        self._journal = journal
        self._questions = questions

    def judge(self, question: str, result: str | None) -> Judged:
        """As `robophd.ports.ContestJudge`."""
        known = self._questions.get(question)
        if known is None:
            msg = f"the run has no question {question!r} that can be evaluated; begin a new run"
            raise RunStateError(msg)
        asked = Asked(key=view_of(known).key, gold=known.gold)
        judged = self._judge.judge(asked, [result])[0]
        if Metric.BIRD in judged.right:
            return Judged(is_right=True)
        if result is None:
            return Judged(is_right=False, difference=(NO_QUERY,))
        gold = self._judge.gold(asked.key).result
        if gold is None or asked.gold is None:
            msg = f"question {question!r} has no gold result; resume the run"
            raise RunStateError(msg)
        # BIRD compares sets, so order and repetitions are no error here, and are not told as one.
        shape = difference(self._read(result), self._read(gold), ordered=False)
        return Judged(is_right=False, difference=shape)

    def _read(self, digest: str) -> QueryResult:
        return result_from_bytes(self._journal.get_blob(digest))
