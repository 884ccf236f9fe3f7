"""One island: a persistent agent, its conversation, and when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from typing import Any

from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Reply,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from orchestrator.errors import BudgetExhausted, ContextTooLong
from orchestrator.methods.agentic_evolve import texts
from orchestrator.methods.agentic_evolve.context import RunContext
from orchestrator.methods.agentic_evolve.entries import INITIAL, fitness_of, stop_key
from orchestrator.methods.agentic_evolve.events import Event, Progress
from orchestrator.methods.agentic_evolve.requests import Requests
from orchestrator.methods.agentic_evolve.toolbox import Toolbox
from orchestrator.search.turns import noted, said


class StopReason(StrEnum):
    """Why an island stopped."""

    COMMITS = "commits"
    """All its evaluations are spent."""
    REQUESTS = "requests"
    """All its requests are spent."""
    IDLE = "idle"
    """Too many turns in a row without a tool call."""
    BUDGET_SPENT = "budget-spent"
    """Tokens or money do not cover the next step."""
    CONTEXT = "context"
    """Task and files leave no room for a conversation in the model's context, by our count or its provider's."""


class Island:
    """Runs one agent from its first message to its stop. Not thread-safe; each has its own thread."""

    def __init__(self, context: RunContext, number: int) -> None:
        self._context = context
        self._number = number
        self._requests = Requests(context, number)
        self._toolbox = Toolbox(context, number, tell=self._tell, requests_left=lambda: self._requests.left)
        self._idle_turns = 0
        self._is_ending_turn = False  # the answer to a commit asked for the end of the turn, to compact after it

    def run(self) -> None:
        """Search until a budget or the agent ends it; then leave the final elites to the neighbours.

        Raises:
            Cancelled: Somebody asked to stop; everything recorded is kept.
            EvolvariumError: Evaluator, sandbox, model or journal failed; likewise.
        """
        self._tell(Event.BEGIN, "")
        try:
            reason = self._search()
        except BudgetExhausted:
            # With all commits made only the agent's last words are missing.
            reason = StopReason.BUDGET_SPENT if self._toolbox.commits_left > 0 else StopReason.COMMITS
        self._context.step(stop_key(self._number), lambda: {"reason": reason.value})
        self._toolbox.stop()
        self._tell(Event.STOP, reason.value)

    def _search(self) -> StopReason:
        conversation: Conversation | None = self._opened(self._first_message())
        while conversation is not None:
            has_room = self._share(conversation) < self._context.settings.compaction_force
            if self._toolbox.commits_left <= 0:
                if has_room and self._requests.left > 0:
                    with suppress(ContextTooLong):
                        self._ask(conversation)  # the agent was told to end its turn: its last words
                return StopReason.COMMITS
            if self._requests.left <= 0:
                return StopReason.REQUESTS
            if self._idle_turns >= self._context.settings.idle_turns:
                return StopReason.IDLE
            if not has_room or self._turn_was_ended(conversation):
                conversation = self._compacted(conversation)  # a turn that is under way is cancelled where it stands
            else:
                conversation = self._continued(conversation)
        return StopReason.CONTEXT

    def _ask(self, conversation: Conversation) -> Reply:
        reply = self._requests.ask(conversation)
        self._tell(Event.REQUEST, "")
        return reply

    def _continued(self, conversation: Conversation) -> Conversation | None:
        """The conversation after the agent's next message; compacted where its provider finds it too long."""
        try:
            reply = self._ask(conversation)
        except ContextTooLong:
            return self._compacted(conversation)
        return self._answered(conversation, reply)

    def _answered(self, conversation: Conversation, reply: Reply) -> Conversation:
        """The conversation after a reply and everything we say to it."""
        if reply.message.tool_calls:
            self._idle_turns = 0
            conversation = conversation.plus(reply.message)
            results, notice = self._results(conversation, reply.message), texts.cut_off_notice(reply.stop)
            return conversation.plus(results if notice is None else noted(results, notice))
        conversation = conversation.plus(said(reply.message))
        if self._is_ending_turn:
            return conversation
        self._idle_turns += 1
        return conversation.plus(UserMessage(text=texts.continue_text(reply.stop)))

    def _results(self, conversation: Conversation, message: AssistantMessage) -> ToolMessage:
        results: list[ToolResult] = []

        def is_nearly_full() -> bool:
            so_far = conversation.plus(ToolMessage(results=tuple(results)))
            if self._share(so_far) >= self._context.settings.compaction_request:
                self._is_ending_turn = True
            return self._is_ending_turn

        for call in message.tool_calls:
            results.append(self._toolbox.execute(call, is_nearly_full=is_nearly_full))
        return ToolMessage(results=tuple(results))

    def _turn_was_ended(self, conversation: Conversation) -> bool:
        """Whether the agent did as the answer to its commit asked."""
        last = conversation.messages[-1]
        return self._is_ending_turn and isinstance(last, AssistantMessage) and not last.tool_calls

    def _compacted(self, conversation: Conversation) -> Conversation | None:
        """A new conversation that begins with the handoff of this one; None: one of them does not fit."""
        for request in self._handoff_requests(conversation):
            with suppress(ContextTooLong):
                handoff = self._ask(request).message.text.strip() or "(The handoff is empty.)"
                self._is_ending_turn = False
                self._idle_turns = 0
                self._tell(Event.HANDOFF, "")
                return self._opened(texts.successor_message(handoff, self._toolbox.workspace, self._facts()))
        return None

    def _handoff_requests(self, conversation: Conversation) -> Iterator[Conversation]:
        """The conversation with the request for a handoff: whole, and shorter by one exchange at its end after another.

        Those that leave no room by our count are passed over.
        """
        messages = list(conversation.messages)
        if len(messages) > 1 and isinstance(messages[-1], UserMessage):
            messages.pop()  # "Continue." is void now
        question = UserMessage(text=texts.fixed_text("handoff"))
        while messages:
            request = Conversation(system=conversation.system, messages=(*messages, question))
            if self._share(request) < 1:
                yield request
            while not isinstance(messages.pop(), AssistantMessage) and messages:
                pass

    def _opened(self, message: str) -> Conversation | None:
        """A conversation that begins with this message; None: it leaves the agent no room."""
        conversation = Conversation(system=self._context.system, messages=(UserMessage(text=message),))
        return conversation if self._share(conversation) < self._context.settings.compaction_force else None

    def _share(self, conversation: Conversation) -> float:
        """How much of the model's context a conversation fills."""
        return self._requests.tokens(conversation) / self._context.ports.model.context_tokens

    def _first_message(self) -> str:
        initial = self._context.initial
        shown = self._context.ports.disclosure.verdict(initial.verdict)
        result = {"id": INITIAL, "metrics": shown["metrics"]}
        if shown["failure"] is not None:
            result["failure"] = shown["failure"]
        facts = {"initial": result} | self._place() | {"budget": self._toolbox.budget()}
        return texts.first_message(initial.candidate.payload, facts)

    def _facts(self) -> dict[str, Any]:
        """What a successor must know beside handoff and files."""
        summary = self._toolbox.archive.summary(self._context.ports.disclosure)
        feedback = {"latest_feedback": self._toolbox.latest}
        return self._place() | feedback | summary | {"budget": self._toolbox.budget()}

    def _place(self) -> dict[str, int]:
        return {"island": self._number, "islands": self._context.settings.islands}

    def _tell(self, event: Event, subject: str) -> None:
        toolbox = self._toolbox
        best = toolbox.archive.best
        self._context.tell(
            Progress(
                event=event,
                island=self._number,
                subject=subject,
                commits=toolbox.commits,
                analyses=toolbox.analyses,
                requests=self._requests.made,
                best_id=None if best is None else best.id,
                best_fitness=None if best is None else fitness_of(best, self._context.task),
                usage=self._requests.usage,
            )
        )
