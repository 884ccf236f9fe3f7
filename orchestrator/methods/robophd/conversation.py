"""An evolver's conversation: one persistent agent from the first look at the pool to the last revision."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.budgets import Account
from orchestrator.domain.conversation import Conversation, Reply, Sampling, StopReason, ToolMessage, UserMessage
from orchestrator.errors import ContextTooLong
from orchestrator.methods.robophd import texts
from orchestrator.methods.robophd.ports import RunPorts
from orchestrator.methods.robophd.settings import Settings
from orchestrator.methods.robophd.standings import iteration_key
from orchestrator.methods.robophd.toolbox import Toolbox
from orchestrator.search.replay import Steps
from orchestrator.search.requests import ModelRequests
from orchestrator.search.streams import derive_seed
from orchestrator.search.turns import noted, said

ROLE = "evolver"
_MIN_ANSWER_TOKENS = 256


class EvolutionFailed(Exception):
    """The agent came to no package; the message says why. Never leaves the method."""


class EvolverConversation:
    """Lets the agent work until it hands in its package. Not thread-safe."""

    def __init__(
        self,
        *,
        iteration: int,
        opening: Conversation,
        toolbox: Toolbox,
        settings: Settings,
        ports: RunPorts,
        steps: Steps,
        before: Callable[[], object],
        on_request: Callable[[int], object],
    ) -> None:
        """Nothing is asked yet.

        Args:
            iteration: Which makes the package.
            opening: The first message.
            toolbox: What the agent works with.
            settings: Of the run.
            ports: Of the run.
            steps: Of the run.
            before: Called before a request that has no reply yet; what it raises keeps it from being made.
            on_request: Told the number of every request that was answered.
        """
        self.requests = 0
        """Those that were answered."""
        self._iteration = iteration
        self._conversation = opening
        self._toolbox = toolbox
        self._settings = settings
        self._before = before
        self._on_request = on_request
        self._idle_turns = 0
        self._model = ModelRequests(
            model=ports.evolver,
            steps=steps,
            ledger=ports.ledger,
            account=Account(role=ROLE, model=ports.evolver.name),
            check=ports.cancel.check,
            tools=texts.tool_specs(),
            announces_free_calls=False,
        )

    def work(self) -> AgentPackage:
        """Until the draft is handed in.

        Raises:
            EvolutionFailed: The agent stopped, or ran out of requests or room, before it was.
            BudgetExhausted: A ceiling of the run does not cover the next request.
            ModelError: The model failed; the run is paused.
            Cancelled: Somebody asked to stop.
        """
        while not self._toolbox.is_finished:
            reply = self._ask()
            if not reply.message.tool_calls:
                self._conversation = self._conversation.plus(said(reply.message))
                self._urge(reply.stop)
                continue
            self._idle_turns = 0
            results = ToolMessage(results=tuple(self._toolbox.execute(call) for call in reply.message.tool_calls))
            if (notice := texts.cut_off_notice(reply.stop)) is not None:
                results = noted(results, notice)
            self._conversation = self._conversation.plus(reply.message, results)
        return self._toolbox.draft.package()

    @property
    def has_requests(self) -> bool:
        """Whether another one may be made."""
        return self.requests < self._settings.evolver.requests

    def revise(self, message: str) -> AgentPackage:
        """Tell the agent how its draft did, and let it hand in another one, or the same.

        Args:
            message: The results.

        Raises:
            EvolvariumError: As `work`.
            EvolutionFailed: As `work`.
        """
        self._toolbox.reopen()
        self._idle_turns = 0
        self._conversation = self._conversation.plus(UserMessage(text=message))
        return self.work()

    def _urge(self, stop: StopReason) -> None:
        self._idle_turns += 1
        left = self._settings.evolver.idle_turns - self._idle_turns
        if left <= 0:
            msg = f"it stopped: {self._idle_turns} turns in a row without a tool call"
            raise EvolutionFailed(msg)
        self._conversation = self._conversation.plus(UserMessage(text=texts.continue_message(left, stop)))

    def _ask(self) -> Reply:
        if not self.has_requests:
            msg = f"its {self._settings.evolver.requests} requests are spent"
            raise EvolutionFailed(msg)
        number = self.requests + 1
        room = self._model.context_tokens - self._model.tokens(self._conversation)
        if room < _MIN_ANSWER_TOKENS:
            msg = f"its conversation has filled the model's context ({self._model.context_tokens} tokens)"
            raise EvolutionFailed(msg)
        sampling = Sampling(
            seed=derive_seed(self._settings.seed, "evolve", self._iteration, number),
            max_output_tokens=min(self._settings.evolver.max_output_tokens, room),
            temperature=self._settings.evolver.temperature,
        )
        key = iteration_key(self._iteration, f"evolve/request/{number:04d}")
        try:
            reply = self._model.ask(key, self._conversation, sampling, before=self._before)
        except ContextTooLong as error:
            msg = f"its conversation has filled the model's context, as its provider says: {error}"
            raise EvolutionFailed(msg) from error
        self.requests = number
        self._on_request(number)
        return reply
