"""Algorithm 1 of EvoSQL (Zhou et al.): elicit, run, judge, remember, draw payloads, aggregate, until it is stable.

`solve` is the method, `self_evolve` its counterpart without a critic. Both start from the same first round, and both
are pure functions of it and of the recorded steps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from orchestrator.errors import BudgetExhausted, InputError
from orchestrator.methods.evosql import texts
from orchestrator.methods.evosql.asking import Asker, calls_of, query_in
from orchestrator.methods.evosql.calls import Call, Phase
from orchestrator.methods.evosql.candidates import Candidate
from orchestrator.methods.evosql.context import QuestionContext, open_context
from orchestrator.methods.evosql.events import Event
from orchestrator.methods.evosql.execution import run_candidates
from orchestrator.methods.evosql.judges import Critic, Judge, Judgement, NoCritic, unjudged
from orchestrator.methods.evosql.ports import QuestionPorts
from orchestrator.methods.evosql.questions import QuestionView
from orchestrator.methods.evosql.settings import Settings
from orchestrator.methods.evosql.solutions import Ending, FirstRound, Round, Solution
from orchestrator.search.agreement import Assessment, assess
from orchestrator.search.memory import Entry, Memory
from orchestrator.search.selection import draw_payload
from orchestrator.search.streams import stream
from orchestrator.search.utility import confidence_of

EVOSQL = "evosql"
SELF_EVOLUTION = "self-evolution"
_NAME = re.compile(r"(?!(?:elicit|sql)$)[a-z0-9][a-z0-9-]{0,39}")  # those two are parts of other journal keys


def elicit(question: QuestionView, schema_text: str, *, settings: Settings, ports: QuestionPorts) -> FirstRound:
    """The first round: K independent candidates, run. Once per question and process: what it cost is charged once.

    Raises:
        BudgetExhausted: The budget does not cover it.
        SandboxError: The sandbox failed; the question can be continued.
        ModelError: The model failed; likewise.
        Cancelled: Somebody asked to stop; likewise.
        RunStateError: The journal belongs to other settings, another database or another schema text.
    """
    context = open_context(question, schema_text, settings=settings, ports=ports)
    asker = Asker(context, ports.generator, method="", role="elicit", temperature=settings.temperature)
    request = texts.write_request(question, schema_text)
    replies = asker.ask_all(Phase.ELICIT, [request] * settings.candidates)
    queries = [query_in(reply) for reply in replies]
    candidates = run_candidates(context, queries, "r0")
    context.tell(Event.PROPOSED, "", 0)
    return FirstRound(question=question, candidates=candidates, calls=calls_of(replies, Phase.ELICIT, 0))


def solve(
    question: QuestionView,
    schema_text: str,
    *,
    settings: Settings,
    ports: QuestionPorts,
    first: FirstRound | None = None,
    name: str = EVOSQL,
) -> Solution:
    """Co-evolution of generator and critic.

    Args:
        question: To answer.
        schema_text: Of its database, in the style `examples`.
        settings: Equal to those the run was started with.
        ports: Everything outside.
        first: Of this question; None: it is elicited here.
        name: Part of the journal keys; settings that share a first round need different ones.

    Raises:
        InputError: The name is malformed, or `first` belongs to another question.
        EvolvariumError: As `elicit`; but where the budget ends after the first round, so does the evolution.
    """
    first = first or elicit(question, schema_text, settings=settings, ports=ports)
    context = open_context(question, schema_text, settings=settings, ports=ports)
    evolution = _Evolution(context, name, has_critic=True)
    return evolution.run(first)


def self_evolve(
    question: QuestionView,
    schema_text: str,
    *,
    settings: Settings,
    ports: QuestionPorts,
    first: FirstRound | None = None,
    name: str = SELF_EVOLUTION,
) -> Solution:
    """Self-evolution: the same without a critic, without a summary and without an early stop.

    Args:
        question: As `solve`.
        schema_text: As `solve`.
        settings: As `solve`.
        ports: As `solve`.
        first: As `solve`.
        name: As `solve`.

    Raises:
        EvolvariumError: As `solve`.
    """
    first = first or elicit(question, schema_text, settings=settings, ports=ports)
    context = open_context(question, schema_text, settings=settings, ports=ports)
    evolution = _Evolution(context, name, has_critic=False)
    return evolution.run(first)


class _Evolution:
    """One method on one question."""

    def __init__(self, context: QuestionContext, name: str, *, has_critic: bool) -> None:
        if not _NAME.fullmatch(name):
            msg = f"{name!r} is no name for a method; use at most 40 lower-case letters, digits and '-'"
            raise InputError(msg)
        settings, ports = context.settings, context.ports
        self._context = context
        self._name = name
        self._has_critic = has_critic
        self._end_key = f"{context.question.key}/{name}/end"
        self._generator = Asker(
            context,
            ports.generator,
            method=name,
            role=f"{name}/aggregate",
            temperature=settings.temperature,
            before=self._stop_where_it_stopped,
        )
        self._judge: Judge = NoCritic(settings.confidence_threshold)
        if has_critic:
            asker = Asker(
                context,
                ports.critic,
                method=name,
                role=f"{name}/critic",
                temperature=settings.critic_temperature,
                before=self._stop_where_it_stopped,
            )
            self._judge = Critic(context, asker)
        self._memory: Memory[Candidate] = Memory()
        self._rounds: list[Round] = []

    def run(self, first: FirstRound) -> Solution:
        """From the first round to the answer."""
        if first.question != self._context.question:
            msg = f"the first round is of question {first.question.id!r}, not of {self._context.question.id!r}"
            raise InputError(msg)
        if len(first.candidates) != self._context.settings.candidates:
            msg = f"the first round has {len(first.candidates)} candidates, not {self._context.settings.candidates}"
            raise InputError(msg)
        ending = self._evolve(first)
        solution = Solution(
            question=first.question,
            method=self._name,
            ending=ending,
            entries=self._memory.entries,
            rounds=tuple(self._rounds),
        )
        self._context.steps.once(self._end_key, dict, identity=end_record(solution))
        self._context.tell(Event.ENDED, self._name, len(self._rounds) - 1)
        return solution

    def _evolve(self, first: FirstRound) -> Ending:
        candidates: tuple[Candidate, ...] = first.candidates
        calls: tuple[Call, ...] = ()
        for number in range(self._context.settings.rounds):
            if number > 0:
                try:
                    candidates, calls = self._aggregate(number)
                except BudgetExhausted:
                    return Ending.BUDGET
            try:
                judgement = self._judgement(number, candidates)
            except BudgetExhausted:
                self._remember(number, candidates, unjudged(self._memory, candidates, self._summary), calls)
                return Ending.BUDGET
            assessment = self._remember(number, candidates, judgement, calls)
            if self._has_critic and judgement.is_judged and assessment.is_stable:
                return Ending.STABLE
        return Ending.ROUNDS

    @property
    def _summary(self) -> str:
        return self._rounds[-1].summary if self._rounds else ""

    def _aggregate(self, number: int) -> tuple[tuple[Candidate, ...], tuple[Call, ...]]:
        """Lines 9 to 13: K new candidates, each from its own payload."""
        context, utilities = self._context, self._rounds[-1].assessment.utilities
        settings, question = context.settings, context.question
        requests = []
        for index in range(settings.candidates):
            drawn = draw_payload(
                self._memory,
                utilities,
                stream(settings.seed, "payload", question.id, number, index),
                count=settings.payload,
                temperature=settings.selection_temperature,
            )
            payload = [entry.content for entry in drawn]
            if self._has_critic:
                requests.append(texts.improve_request(question, context.schema, payload, summary=self._summary))
            else:
                requests.append(texts.improve_without_critic_request(question, context.schema, payload))
        replies = self._generator.ask_all(Phase.AGGREGATE, requests, round_number=number)
        queries = [query_in(reply) for reply in replies]
        candidates = run_candidates(context, queries, f"{self._name}/r{number}")
        context.tell(Event.PROPOSED, self._name, number)
        return candidates, calls_of(replies, Phase.AGGREGATE, number)

    def _judgement(self, number: int, candidates: Sequence[Candidate]) -> Judgement:
        """Line 18; the last round's is left out where the settings say so."""
        settings = self._context.settings
        is_left_out = self._has_critic and number == settings.rounds - 1 and not settings.critic_last_round
        if is_left_out:
            return unjudged(self._memory, candidates, self._summary)
        return self._judge.judge(number, candidates, self._summary)

    def _remember(
        self, number: int, candidates: Sequence[Candidate], judgement: Judgement, calls: tuple[Call, ...]
    ) -> Assessment[Candidate]:
        """Lines 20 to 33: the round's entries join the memory, and it is assessed."""
        judged = zip(candidates, judgement.raw_scores, judgement.critiques, strict=True)
        self._memory.add(
            Entry(
                key=candidate.key,
                round=number,
                index=index,
                evidence=candidate.execution.evidence,
                outcome=candidate.execution.cluster,
                confidence=confidence_of(candidate.execution.evidence, raw),
                content=replace(candidate, critique=critique),
            )
            for index, (candidate, raw, critique) in enumerate(judged)
        )
        assessment = assess(self._memory, self._context.settings.rules)
        self._rounds.append(
            Round(
                number=number,
                assessment=assessment,
                summary=judgement.summary,
                is_judged=judgement.is_judged,
                unreadable=judgement.unreadable,
                calls=(*calls, *judgement.calls),
            )
        )
        self._context.tell(Event.JUDGED, self._name, number)
        return assessment

    def _stop_where_it_stopped(self) -> None:
        """A budget that has ended a question has ended it for good: its answer has been given out."""
        if self._context.steps.recorded(self._end_key) is not None:
            msg = f"{self._name} has stopped at this request of question {self._context.question.id!r} before"
            raise BudgetExhausted(msg)


def end_record(solution: Solution) -> dict[str, Any]:
    """What the journal keeps of a solution; a repetition must come to the same."""
    return {
        "ending": solution.ending.value,
        "answers": [{"sql": r.answer.sql, "result": r.answer.execution.result} for r in solution.rounds],
        "entries": len(solution.entries),
        "unreadable": sum(r.unreadable for r in solution.rounds),
    }
