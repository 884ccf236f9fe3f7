"""The conversation about one question: query, verification, repair."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.domain.conversation import Conversation, UserMessage
from orchestrator.domain.sql import QueryStatus
from orchestrator.methods.robophd.answering import texts
from orchestrator.methods.robophd.answering.attempts import Answer, Attempt, Ending, Phase, Verdict
from orchestrator.methods.robophd.answering.executions import Execution
from orchestrator.methods.robophd.answering.requests import NumberedRequests
from orchestrator.methods.robophd.settings import AnswerSettings
from orchestrator.search.turns import is_cut_off, said
from orchestrator.sql.answers import extract_sql

_APPROVAL = "CORRECT"


class Dialogue:
    """One conversation from its first request to its answer. Not thread-safe, and used once."""

    def __init__(
        self, requests: NumberedRequests, settings: AnswerSettings, *, run: Callable[[str, int], Execution]
    ) -> None:
        """Nothing is asked yet.

        Args:
            requests: Of this conversation.
            settings: How many corrections, at which temperatures.
            run: Runs a query that came with the n-th reply.
        """
        self._requests = requests
        self._settings = settings
        self._run = run
        self._executions: dict[str, Execution] = {}
        self._attempts: list[Attempt] = []
        self._standing: Execution | None = None
        self._ending = Ending.ANSWERED

    def hold(self, question: str, conversation: Conversation) -> Answer:
        """Ask until an answer stands.

        Args:
            question: Id.
            conversation: Its beginning, with the request for a query.

        Raises:
            EvolvariumError: As requests and runs; what they have recorded stays.
        """
        held = self._ask(conversation, Phase.QUERY)
        if held is not None:
            self._standing = self._executed()
            held = self._verified(held)
        if held is not None and not (self._standing and self._standing.gives_rows):
            self._repair(held)
        standing = self._standing
        return Answer(
            question=question,
            ending=self._ending if standing is not None else Ending.NO_QUERY,
            sql="" if standing is None else standing.sql,
            result=None if standing is None else standing.result,
            status=None if standing is None else standing.status,
            rows=None if standing is None else standing.rows,
            attempts=tuple(self._attempts),
            unreadable=sum(attempt.verdict is Verdict.UNREADABLE for attempt in self._attempts),
            requests=self._requests.made,
            usage=self._requests.usage,
        )

    def _verified(self, held: Conversation) -> Conversation | None:
        """The conversation after all rounds of verification; None: it has no room for another."""
        for _ in range(self._settings.corrections):
            standing = self._standing
            if standing is None:
                return held  # there is nothing to look at
            after = self._ask(held.plus(texts.verify_message(standing.sql, standing.shown)), Phase.VERIFY)
            if after is None:
                return None
            held = after
            if self._attempts[-1].verdict is Verdict.CORRECT:
                return held
            self._standing = self._executed() or standing
        return held

    def _repair(self, held: Conversation) -> None:
        before = self._standing
        if self._ask(held.plus(_repair_message(before)), Phase.REPAIR) is None:
            return
        repaired = self._executed()
        if repaired is not None and (before is None or repaired.gives_rows):
            self._standing = repaired

    def _ask(self, conversation: Conversation, phase: Phase) -> Conversation | None:
        """The conversation with the reply, which is the last attempt now; None: there is no room for one."""
        temperature = self._settings.temperature(self._requests.made)
        reply = self._requests.ask(conversation, temperature)
        if reply is None:
            self._ending = Ending.BUDGET
            return None
        text = reply.message.text
        if phase is Phase.VERIFY and text.strip() == _APPROVAL:
            verdict, sql = Verdict.CORRECT, ""
        else:
            sql = extract_sql(text, is_cut_off=is_cut_off(reply))
            verdict = Verdict.QUERY if sql else Verdict.UNREADABLE
        run = self._execution(sql) if sql else None
        self._attempts.append(
            Attempt(
                phase=phase,
                temperature=temperature,
                verdict=verdict,
                sql=sql,
                status=None if run is None else run.status,
                rows=None if run is None else run.rows,
            )
        )
        return conversation.plus(said(reply.message))

    def _executed(self) -> Execution | None:
        """What the last reply's query gave; None: it held none."""
        return self._executions.get(self._attempts[-1].sql)

    def _execution(self, sql: str) -> Execution:
        """Of a query that is sent twice, the first result is shown again."""
        if sql not in self._executions:
            self._executions[sql] = self._run(sql, self._requests.made)
        return self._executions[sql]


def _repair_message(standing: Execution | None) -> UserMessage:
    if standing is None:
        return texts.repair_message(texts.NO_QUERY, "", None)
    if standing.status is QueryStatus.OK:
        return texts.repair_message(texts.NO_ROWS, standing.sql, standing.shown)
    failure = str(standing.shown["error"]) or standing.status.value
    return texts.repair_message(failure, standing.sql, standing.shown)
