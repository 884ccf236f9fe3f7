"""A provider's language model behind our port: one reply, with everything that is tried on the way to it.

A call that may have been paid for is never repeated in here; one that certainly was not is, as long as patience lasts.
What a server refuses to be told is left out from then on, which is all that a model learns. No exception of an SDK
leaves the thread it came up in: `Failure` is what is left of it, since an exception may hold the key.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from orchestrator.domain.conversation import Conversation, Reply, Sampling, ToolSpec, Usage
from orchestrator.domain.model_access import ModelEntry, Patience, Price
from orchestrator.errors import LostReply
from orchestrator.llm.providers.bodies import DEFAULT_CONTEXT_TOKENS, prepared, samples_taken
from orchestrator.llm.providers.breaker import Breaker
from orchestrator.llm.providers.calls import call
from orchestrator.llm.providers.capabilities import OUTPUT_LIMIT, THINKING, UNFIT_THOUGHTS, Capabilities, learned
from orchestrator.llm.providers.estimates import replies, request_tokens, worst_usages
from orchestrator.llm.providers.facts import ask_facts, check_facts
from orchestrator.llm.providers.keyless import names_without_key, without_key
from orchestrator.llm.providers.output_room import shared_output
from orchestrator.llm.providers.retrying import TimeAllowed, error_of, retried
from orchestrator.llm.providers.wire import Connection, Failure, Fault, Gathered, ModelFacts, Secret, Wire
from orchestrator.runtime.workers import CancelToken


@dataclass(slots=True, kw_only=True)
class _Request:
    """What one `complete` asks for."""

    conversation: Conversation
    tools: Sequence[ToolSpec]
    samplings: Sequence[Sampling]
    allowed: TimeAllowed
    refused: set[Capabilities] = field(default_factory=set)
    """What its server was taken to take on the way, and did not."""
    is_without_thoughts: bool = False
    """Whether its conversation went so that it cannot have them."""


class ProviderModel:
    """Implements `LanguageModel` and `ManySamples`; `close` it at the end. Thread-safe."""

    is_repeatable = False

    def __init__(  # noqa: PLR0913 - everything that a call depends on, once
        self,
        *,
        name: str,
        entry: ModelEntry,
        wire: Wire,
        connection: Connection,
        key: Secret | None,
        capabilities: Capabilities,
        price: Price | None,
        patience: Patience,
        breaker: Breaker,
        token: CancelToken,
        note: Callable[[str], None],
    ) -> None:
        """Sends nothing.

        Args:
            name: For records, for instance `anthropic/NAME`.
            entry: Which model it is; its sizes count before those of `capabilities`.
            wire: Its protocol.
            connection: To its server; the model's own from here on.
            key: None: it is asked without.
            capabilities: What its server takes.
            price: None: unknown.
            patience: How long is waited.
            breaker: Of its server.
            token: Ends every wait.
            note: Told what an operator should know and no result depends on; in any thread.
        """
        self.name = name
        self._entry = entry
        self._wire = wire
        self._connection = connection
        self._key = key
        self._price = price
        self._patience = patience
        self._breaker = breaker
        self._token = token
        self._note = note
        self._lock = threading.Lock()  # guards the next two: several threads may be refused the same at once
        self._capabilities = replace(
            capabilities,
            context_tokens=entry.context_tokens or capabilities.context_tokens,
            max_output_tokens=entry.max_output_tokens or capabilities.max_output_tokens,
        )
        self._noted: set[str] = set()
        self._open = ExitStack()
        self._open.enter_context(connection)

    @property
    def context_tokens(self) -> int:
        """How long a conversation may grow."""
        known = self._capabilities.context_tokens
        if known is None:
            self._note_once(
                f"nobody says how long a conversation {self.name} takes; it is taken for {DEFAULT_CONTEXT_TOKENS} "
                "tokens (give `context_tokens` in a --models file)"
            )
        return known or DEFAULT_CONTEXT_TOKENS

    @property
    def samples_at_once(self) -> int:
        """How many replies one call gives at most."""
        return samples_taken(self._capabilities)

    def close(self) -> None:
        """Give the connection back; idempotent."""
        self._open.close()

    def check(self, seconds: float = 10.0) -> None:
        """See before any work whether the server is there, takes the key and has the model; costs nothing.

        Sizes that neither the entry nor the table knows are taken from the server, if it says them.

        Args:
            seconds: For its answer.

        Raises:
            PrerequisiteError: It is not so; says what to do.
            Cancelled: Somebody asked to stop.
        """
        answer = ask_facts(self._connection, self._entry, reading=self._reading, seconds=seconds, token=self._token)
        if isinstance(answer, ModelFacts):
            answer = names_without_key(answer, self._key)
        facts = check_facts(answer, name=self.name, entry=self._entry, seconds=seconds)
        with self._lock:
            self._capabilities = replace(
                self._capabilities,
                context_tokens=self._capabilities.context_tokens or facts.context_tokens,
                max_output_tokens=self._capabilities.max_output_tokens or facts.max_output_tokens,
            )

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        """An estimate on the high side, and a pure function of its arguments."""
        return request_tokens(conversation, tools, protocol=self._wire.name, account=self.name)

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        """What `complete` may cost at most."""
        return self.worst_case_of_samples(conversation, tools, [sampling])[0]

    def worst_case_of_samples(
        self, conversation: Conversation, tools: Sequence[ToolSpec], samplings: Sequence[Sampling]
    ) -> list[Usage]:
        """What `complete_samples` may cost at most; the input is part of the first."""
        tokens = self.count_tokens(conversation, tools)
        output, _ = shared_output(self._capabilities, samplings[0].max_output_tokens, tokens)
        return worst_usages(self._price, input_tokens=tokens, output_tokens=output, samples=len(samplings))

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        """The model's next message; raises as `LanguageModel.complete` says."""
        return self._ask(conversation, tools, [sampling])[0]

    def complete_samples(
        self, conversation: Conversation, tools: Sequence[ToolSpec], samplings: Sequence[Sampling]
    ) -> list[Reply]:
        """Replies to one conversation, in one call; raises as `ManySamples.complete_samples` says."""
        answers = self._ask(conversation, tools, samplings)
        if len(answers) < len(samplings):
            self._one_at_a_time()
        return answers

    def _ask(self, conversation: Conversation, tools: Sequence[ToolSpec], samplings: Sequence[Sampling]) -> list[Reply]:
        request = _Request(
            conversation=conversation,
            tools=tools,
            samplings=samplings,
            allowed=TimeAllowed(self._patience.request_seconds),
        )
        outcome = retried(
            lambda: self._attempt(request), allowed=request.allowed, breaker=self._breaker, token=self._token
        )
        if isinstance(outcome, Failure):
            raise error_of(
                outcome,
                name=self.name,
                key=self._entry.key_source,
                allowed=request.allowed,
                breaker=self._breaker,
            )
        return self._replies(outcome, request)

    def _attempt(self, request: _Request) -> Gathered | Failure:
        """One call, and again at once as long as it is a parameter that is refused, each of them once."""
        while True:
            capabilities = self._capabilities
            outcome = self._call(
                request, capabilities.without(THINKING) if request.is_without_thoughts else capabilities
            )
            if isinstance(outcome, Gathered) or outcome.fault is not Fault.PARAMETER or outcome.may_be_paid:
                return outcome
            if outcome.parameter == UNFIT_THOUGHTS and not request.is_without_thoughts:
                request.is_without_thoughts = True
            elif not self._gives_up(outcome, capabilities, request.refused):
                return outcome

    def _call(self, request: _Request, capabilities: Capabilities) -> Gathered | Failure:
        allowed = request.allowed
        exchange = prepared(lambda: self._parameters(request, capabilities), self._connection, name=self.name)
        with self._breaker.turn(
            left_seconds=allowed.left_seconds,
            outage_seconds=self._patience.outage_seconds,
            token=self._token,
            note=self._note,
        ) as turn:
            allowed.extend(turn.waited_seconds)
            outcome = call(
                exchange,
                name=f"model {self.name}",
                reading=self._reading,
                deadline=allowed.deadline,
                seconds=allowed.seconds,
                token=self._token,
            )
            turn.ended(outcome if isinstance(outcome, Failure) else None)
        return outcome

    def _parameters(self, request: _Request, capabilities: Capabilities) -> dict[str, object]:
        tokens = self.count_tokens(request.conversation, request.tools)
        samplings = request.samplings[: samples_taken(capabilities)]
        output, capabilities = shared_output(capabilities, samplings[0].max_output_tokens, tokens)
        return self._wire.parameters(
            request.conversation,
            request.tools,
            [replace(sampling, max_output_tokens=output) for sampling in samplings],
            entry=self._entry,
            account=self.name,
            capabilities=capabilities,
        )

    def _reading(self, error: Exception, has_begun: bool) -> Failure:
        return self._wire.failure(error, has_begun=has_begun, key=self._key)

    def _gives_up(self, failure: Failure, used: Capabilities, refused: set[Capabilities]) -> bool:
        """Whether there is something to try without the refused parameter; if so, it is remembered."""
        refused.add(used)
        if failure.parameter is None or failure.parameter == UNFIT_THOUGHTS:
            return False
        with self._lock:
            current = self._capabilities
            if current not in refused:
                return True  # another thread has learned something meanwhile
            poorer = learned(current, failure.parameter)
            if poorer is None or poorer in refused:
                return False
            self._capabilities = poorer
        if failure.parameter.startswith(OUTPUT_LIMIT):
            limit = failure.parameter.removeprefix(OUTPUT_LIMIT)
            self._note_once(f"{self.name} gives at most {limit} tokens of output; it is asked for no more from now on")
        else:
            self._note_once(f"{self.name} refuses {failure.parameter!r}; it is asked without from now on")
        return True

    def _one_at_a_time(self) -> None:
        with self._lock:
            if self._capabilities.samples == 1:
                return
            self._capabilities = replace(self._capabilities, samples=1)
        self._note_once(
            f"{self.name} gives fewer replies to a request than it is asked for; it is asked for one at a time"
        )

    def _replies(self, gathered: Gathered, request: _Request) -> list[Reply]:
        gathered = without_key(gathered, self._key)
        count = min(len(gathered.messages), len(request.samplings))
        if count == 0:
            msg = f"{self.name}: its answer holds no message; it may have been paid for all the same"
            raise LostReply(msg)
        if gathered.served_by not in ("", self._entry.model):
            self._note_once(
                f"{self.name} is answered by {gathered.served_by!r:.100}, which is not the name it was asked under"
            )
        tokens = self.count_tokens(request.conversation, request.tools)
        return replies(
            replace(gathered, messages=gathered.messages[:count], stops=gathered.stops[:count]).owned_by(self.name),
            price=self._price,
            asked_as=self._entry.model,
            input_tokens=tokens,
        )

    def _note_once(self, text: str) -> None:
        with self._lock:
            is_new = text not in self._noted
            self._noted.add(text)
        if is_new:
            self._note(text)
