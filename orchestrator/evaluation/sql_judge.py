"""Judges queries by what is recorded of them: the rows of a predicted query against the rows of the gold query.

Nothing is run to judge: gold ran once, in containers of its own, and its result lies in the run's journal, as a
prediction's does. Whatever keeps a gold query from having a result keeps its question out of the denominator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.domain.sql import QueryResult
from orchestrator.domain.sql_results import result_bytes, result_from_bytes
from orchestrator.errors import RunStateError
from orchestrator.ports import Database, Journal
from orchestrator.search.replay import Steps
from orchestrator.sql.clusters import cluster_key
from orchestrator.sql.gate import Refusal, Statement, check
from orchestrator.sql.verdicts import GoldStatus, Verdict, gold_status
from orchestrator.sql.verdicts import judge as verdict_of

GOLD = "/gold"
"""End of the journal key of what is recorded of a gold query, after `q/17`."""
_BATCH = 32
"""Gold queries whose results are held at once."""


class Metric(StrEnum):
    """In what a prediction can be right; defined in `sql/comparison.py`."""

    BIRD = "bird"
    MULTISET = "multiset"
    SPIDER = "spider"
    STRICT = "strict"
    RELAXED = "relaxed"


class Standing(StrEnum):
    """Whether a question can be evaluated; all but the first leave the denominator."""

    EVALUABLE = "evaluable"
    NO_GOLD = "no_gold"
    """The data set gives no query."""
    DENIED = "denied"
    """The policy keeps back something that the gold query reads."""
    GOLD_ERROR = "gold_error"
    """The gate or SQLite refuses it, or it needs more memory than any query gets."""
    GOLD_TIMEOUT = "gold_timeout"
    GOLD_TRUNCATED = "gold_truncated"
    """It has more rows than are kept, so that nothing can be compared with all of them."""


class Flag(StrEnum):
    """What to know of a comparison beside its verdicts."""

    BOTH_EMPTY = "both_empty"
    """Neither gave a row, which is a match in every metric and evidence of nothing."""
    LOSSY_TEXT = "lossy_text"
    """A cell holds text that is not UTF-8; it was compared byte for byte."""
    TRUNCATED = "truncated"
    """The prediction has more rows than are kept, and so more than the gold query: it is wrong."""
    UNDECIDED = "undecided"
    """Whether some order of the columns makes `spider` right would take too long to find out: it counts as wrong."""
    NONDETERMINISTIC = "nondeterministic"
    """The gold query gives something else when SQLite reads tables in another order."""


class Gold(BaseModel):
    """What is recorded of one gold query."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dataset: str
    """Digest of the data set it comes from."""
    database: str
    """Digest of the volume it ran on."""
    standing: Standing
    message: str
    """Why it cannot be evaluated; empty otherwise."""
    result: str | None
    """Digest of the blob with its result; None: it cannot be evaluated."""
    nondeterministic: bool
    as_prediction: frozenset[Metric]
    """In what it is right when it is run and judged like a prediction: everything, or something is wrong with us."""
    wall_seconds: Annotated[float, Field(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question's gold query, and where its record stands."""

    key: str
    """Of the question, for instance `q/17`."""
    gold: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What is said of one result."""

    right: frozenset[Metric] = frozenset()
    flags: frozenset[Flag] = frozenset()


class SqlJudge:
    """Judges the questions of one run. Thread-safe as its journal is."""

    def __init__(self, journal: Journal, *, dataset: str) -> None:
        """Nothing is run or read yet.

        Args:
            journal: Of the run; holds the gold results.
            dataset: Digest of the data set.
        """
        self._journal = journal
        self._steps = Steps(journal)
        self._dataset = dataset

    def run_gold(self, asked: Sequence[Asked], gold: Database, predicted: Database) -> list[Gold]:
        """Run the gold queries of one database that are not recorded yet.

        Args:
            asked: Questions of this database.
            gold: The database in the gold domain.
            predicted: The same in the predicted domain, opened for this alone: no prediction may meet a gold query.

        Returns:
            What is recorded of each, in their order.

        Raises:
            SandboxError: The sandbox failed; what was recorded stays.
            Cancelled: An operator asked to stop; likewise.
            RunStateError: The journal holds results on other data.
        """
        found = []
        for begin in range(0, len(asked), _BATCH):
            part = asked[begin : begin + _BATCH]
            missing = [one for one in part if self._steps.recorded(one.key + GOLD) is None]
            records = self._records(missing, gold, predicted)
            found += [self._recorded(one.key, records, gold.digest) for one in part]
        return found

    def gold(self, key: str) -> Gold:
        """What is recorded of a question's gold query.

        Raises:
            RunStateError: Nothing, or it is damaged.
        """
        gold = read_gold(self._journal, key + GOLD)
        if gold is None:
            msg = f"the gold query of {key!r} has not been run; resume the run"
            raise RunStateError(msg)
        return gold

    def judge(self, asked: Asked, results: Sequence[str | None]) -> list[Judged]:
        """Judge recorded results of predictions of one question, each different one once.

        Args:
            asked: The question, which can be evaluated.
            results: Digests of blobs; None: there was no query to run.

        Raises:
            RunStateError: A result is missing or damaged, or the question cannot be evaluated.
        """
        gold = self.gold(asked.key)
        if gold.result is None or asked.gold is None:
            msg = f"question {asked.key!r} cannot be evaluated ({gold.standing.value}), so nothing can be judged by it"
            raise RunStateError(msg)
        right_one, statement = self._result(gold.result), check(asked.gold)
        known: dict[str | None, Judged] = {None: Judged()}
        for digest in results:
            if digest is not None and digest not in known:
                known[digest] = _judged(self._result(digest), right_one, statement, gold.nondeterministic)
        return [known[digest] for digest in results]

    def _recorded(self, key: str, records: Mapping[str, Mapping[str, object]], database: str) -> Gold:
        identity = {"dataset": self._dataset, "database": database}
        self._steps.once(key + GOLD, lambda: records[key], identity=identity)
        return self.gold(key)

    def _result(self, digest: str) -> QueryResult:
        return result_from_bytes(self._journal.get_blob(digest))

    def _records(
        self, asked: Sequence[Asked], gold: Database, predicted: Database
    ) -> Mapping[str, Mapping[str, object]]:
        queries = {one.key: one.gold for one in asked if one.gold is not None}
        results = dict(zip(queries, gold.query_all(list(queries.values()), attempt_id="gold"), strict=True))
        sound = [key for key, result in results.items() if result.is_ok]
        again = predicted.query_all([queries[key] for key in sound], attempt_id="gold-as-prediction")
        as_predictions = dict(zip(sound, again, strict=True))
        return {
            one.key: _without_gold()
            if one.gold is None
            else self._record(one.gold, results[one.key], as_predictions.get(one.key), gold)
            for one in asked
        }

    def _record(
        self, sql: str, result: QueryResult, as_prediction: QueryResult | None, gold: Database
    ) -> Mapping[str, object]:
        standing = _standing(sql, result)
        nondeterministic = False
        right: frozenset[Metric] = frozenset()
        if standing is Standing.EVALUABLE:
            statement = check(sql)
            reverse = gold.query(sql, attempt_id="gold-reverse", reverse=True)
            keys = {cluster_key(one, ordered=statement.has_top_level_order) for one in (result, reverse)}
            nondeterministic = len(keys) > 1
            if as_prediction is not None:
                right = _judged(as_prediction, result, statement, nondeterministic).right
        return {
            "standing": standing.value,
            "message": "it gives more rows or bytes than the policy keeps" if result.truncated else result.message,
            "result": self._journal.put_blob(result_bytes(result)) if standing is Standing.EVALUABLE else None,
            "nondeterministic": nondeterministic,
            "as_prediction": sorted(metric.value for metric in right),
            "wall_seconds": round(result.wall_seconds, 4),
        }


def read_gold(journal: Journal, key: str) -> Gold | None:
    """What is recorded of a gold query; None: nothing yet.

    Args:
        journal: Of the run.
        key: Of the record, for instance `q/17/gold`.

    Raises:
        RunStateError: It is damaged.
    """
    record = journal.get(key)
    if record is None:
        return None
    try:
        return Gold.model_validate(record)
    except ValidationError as error:
        msg = f"the record of {key!r} is damaged or of another version; restore the run from a copy"
        raise RunStateError(msg) from error


def _judged(predicted: QueryResult, gold: QueryResult, statement: Statement, nondeterministic: bool) -> Judged:
    verdict = verdict_of(predicted, gold, gold_statement=statement, nondeterministic=nondeterministic)
    return Judged(
        right=frozenset(metric for metric in Metric if verdict.metrics[metric.value]), flags=frozenset(_flags(verdict))
    )


def _flags(verdict: Verdict) -> Iterator[Flag]:
    """The flags of a verdict have the names of its fields."""
    return (flag for flag in Flag if getattr(verdict, flag.value))


def _standing(sql: str, result: QueryResult) -> Standing:
    match gold_status(result):
        case GoldStatus.OK:
            return Standing.EVALUABLE
        case GoldStatus.TIMEOUT:
            return Standing.GOLD_TIMEOUT
        case GoldStatus.TRUNCATED:
            return Standing.GOLD_TRUNCATED
        case GoldStatus.REFUSED if _is_query(sql):
            return Standing.DENIED
        case _:
            return Standing.GOLD_ERROR


def _is_query(sql: str) -> bool:
    """Whether the gate lets it through, so that only the policy can have refused it."""
    try:
        check(sql)
    except Refusal:
        return False
    return True


def _without_gold() -> Mapping[str, object]:
    return {
        "standing": Standing.NO_GOLD.value,
        "message": "the data set gives no gold query",
        "result": None,
        "nondeterministic": False,
        "as_prediction": [],
        "wall_seconds": 0.0,
    }
