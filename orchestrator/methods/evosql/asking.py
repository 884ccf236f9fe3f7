"""Requests about one question: their room, seeds and accounts, and many of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from orchestrator.domain.budgets import Account
from orchestrator.domain.conversation import Conversation, Reply, Sampling
from orchestrator.errors import BudgetExhausted, Cancelled, ContextTooLong
from orchestrator.methods.evosql.calls import Call, Phase, request_key
from orchestrator.methods.evosql.context import QuestionContext
from orchestrator.ports import LanguageModel, ManySamples
from orchestrator.runtime.workers import CancelToken, Worker, WorkerGroup
from orchestrator.search.requests import ModelRequests
from orchestrator.search.streams import derive_seed
from orchestrator.search.turns import is_cut_off
from orchestrator.sql.answers import extract_sql

T = TypeVar("T")
_MIN_ANSWER_TOKENS = 16
_STOP_SECONDS = 900.0


class Asker:
    """Asks one model for one purpose. Thread-safe, as long as no two threads ask under the same key at once."""

    def __init__(
        self,
        context: QuestionContext,
        model: LanguageModel,
        *,
        method: str,
        role: str,
        temperature: float | None,
        before: Callable[[], object] = lambda: None,
    ) -> None:
        """Nothing is asked yet.

        Args:
            context: Of the question.
            model: Who is asked.
            method: Part of the journal keys; empty for the first round, which belongs to all methods.
            role: Whose spending it is, in the ledger.
            temperature: Of the answers; None: the provider's default.
            before: See `ModelRequests.ask`.
        """
        self._context = context
        self._model = model
        self._method = method
        self._temperature = temperature
        self._before = before
        self._requests = ModelRequests(
            model=model,
            steps=context.steps,
            ledger=context.ports.ledger,
            account=Account(role=role, model=model.name),
            check=context.ports.cancel.check,
            announces_free_calls=False,
        )

    def ask(self, phase: Phase, number: int, conversation: Conversation, *, round_number: int = 0) -> Reply | None:
        """The answer; None: the conversation leaves no room for one in the model's context, by our count or by its own.

        Args:
            phase: What for.
            number: Of the request within phase and round, from 1.
            conversation: What the model is told.
            round_number: Of the round it belongs to.

        Raises:
            BudgetExhausted: A ceiling does not cover its worst case, or did not in an earlier process.
            ModelError: No answer could be had.
            Cancelled: Somebody asked to stop.
            RunStateError: The journal holds an answer to another request.
        """
        room = self._room(conversation)
        if room < _MIN_ANSWER_TOKENS:
            return None
        key = request_key(self._context.question.key, self._method, phase, round_number, number)
        sampling = self._sampling(phase, round_number, number, room)
        try:
            return self._requests.ask(key, conversation, sampling, before=self._before)
        except ContextTooLong:
            return None

    def ask_all(
        self, phase: Phase, conversations: Sequence[Conversation], *, round_number: int = 0
    ) -> list[Reply | None]:
        """The answers to many conversations, numbered from 1; those that are recorded are charged in any case.

        Equal conversations are asked together where the model can answer one several times over at once.

        Raises:
            BudgetExhausted: A ceiling did not cover one of them; the others have been asked, as far as it went.
            EvolvariumError: As `ask`.
        """

        def job(numbers: Sequence[int]) -> Callable[[], list[Reply | None] | BudgetExhausted]:
            def run() -> list[Reply | None] | BudgetExhausted:
                try:
                    return self._ask_samples(phase, numbers, conversations[numbers[0] - 1], round_number)
                except BudgetExhausted as error:
                    return error

            return run

        ports = self._context.ports
        groups = self._groups(conversations)
        found = run_all([job(numbers) for numbers in groups], parallel=ports.parallel_requests, token=ports.cancel)
        answers: dict[int, Reply | None] = {}
        for numbers, replies in zip(groups, found, strict=True):
            if isinstance(replies, BudgetExhausted):
                raise replies
            answers.update(zip(numbers, replies, strict=True))
        return [answers[number] for number in sorted(answers)]

    def _groups(self, conversations: Sequence[Conversation]) -> list[list[int]]:
        """Numbers of the conversations that are asked together; how they fall into groups is not recorded anywhere."""
        most = self._model.samples_at_once if isinstance(self._model, ManySamples) else 1
        groups: list[list[int]] = []
        for number, conversation in enumerate(conversations, 1):
            alike = (g for g in groups if len(g) < most and conversations[g[0] - 1] == conversation)
            group = next(alike, None)
            if group is None:
                groups.append([number])
            else:
                group.append(number)
        return groups

    def _ask_samples(
        self, phase: Phase, numbers: Sequence[int], conversation: Conversation, round_number: int
    ) -> list[Reply | None]:
        """The answers to one conversation, each under its own number."""
        if len(numbers) == 1:
            return [self.ask(phase, numbers[0], conversation, round_number=round_number)]
        room = self._room(conversation)
        if room < _MIN_ANSWER_TOKENS:
            return [None] * len(numbers)
        question = self._context.question.key
        return self._requests.ask_samples(
            [request_key(question, self._method, phase, round_number, number) for number in numbers],
            conversation,
            [self._sampling(phase, round_number, number, room) for number in numbers],
            before=self._before,
        )

    def _room(self, conversation: Conversation) -> int:
        """How many tokens an answer may have at most; below 0: the conversation is too long itself."""
        return self._model.context_tokens - self._requests.tokens(conversation)

    def _sampling(self, phase: Phase, round_number: int, number: int, room: int) -> Sampling:
        settings = self._context.settings
        return Sampling(
            seed=derive_seed(settings.seed, phase.value, self._context.question.id, round_number, number),
            max_output_tokens=min(settings.max_output_tokens, room),
            temperature=self._temperature,
        )


def query_in(reply: Reply | None) -> str:
    """The query in a generator's reply; empty: there is none, or it may end in the middle of it."""
    return "" if reply is None else extract_sql(reply.message.text, is_cut_off=is_cut_off(reply))


def calls_of(replies: Sequence[Reply | None], phase: Phase, number: int) -> tuple[Call, ...]:
    """The calls that were really made."""
    return tuple(Call(phase=phase, round=number, usage=reply.usage) for reply in replies if reply is not None)


def run_all(jobs: Sequence[Callable[[], T]], *, parallel: int, token: CancelToken) -> list[T]:
    """What the jobs return, in their order.

    Args:
        jobs: Independent of each other.
        parallel: At most so many run at once; 1: one after the other in this thread.
        token: Ends the waiting.

    Raises:
        BaseException: What a job raised; the others are stopped.
    """
    if parallel == 1 or len(jobs) < 2:
        return [job() for job in jobs]
    workers: list[Worker[T]] = []
    group = WorkerGroup("requests", limit=parallel, token=token, stop_seconds=_STOP_SECONDS)
    with group, suppress(Cancelled):  # where one has failed before all are there, the group raises its error
        for number, job in enumerate(jobs, 1):
            workers.append(group.spawn(str(number), job))
    return [worker.result() for worker in workers]
