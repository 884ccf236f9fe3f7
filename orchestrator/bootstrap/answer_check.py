"""A recorded search walked through once more, to see the answers that its models really got.

The record of a request holds the digest of its conversation. Walking through the method's own code over the records
builds every conversation again, and the digests say that it is the same, to the byte. Nothing is performed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from orchestrator.bootstrap.search import SearchRun
from orchestrator.domain.budgets import Budget
from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Reply,
    Sampling,
    ToolMessage,
    ToolSpec,
    Usage,
)
from orchestrator.errors import EvolvariumError, RunStateError
from orchestrator.evaluation.replay import ReplayAnalyst, ReplayEvaluator
from orchestrator.methods.agentic_evolve import RunPorts, texts
from orchestrator.methods.agentic_evolve.context import RunContext
from orchestrator.methods.agentic_evolve.entries import INITIAL, load_entry
from orchestrator.methods.agentic_evolve.exchange import Exchange
from orchestrator.methods.agentic_evolve.island import Island
from orchestrator.methods.agentic_evolve.ports import Disclosure
from orchestrator.runtime.ledger import Ledger
from orchestrator.runtime.workers import CancelToken
from orchestrator.search.replay import Mode, Steps

CountTokens = Callable[[Conversation, Sequence[ToolSpec]], int]


class _Listener:
    """A `LanguageModel` that is asked nothing, and hears every conversation as it is measured."""

    is_repeatable = False

    def __init__(self, name: str, context_tokens: int, count: CountTokens) -> None:
        self.name = name
        self.context_tokens = context_tokens
        self._count = count
        self.heard: dict[str, str] = {}
        """By commit: the answer to it."""
        self._last: Sequence[object] = ()

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        """As the recorded model counts."""
        last = conversation.messages[-2:]
        if last != self._last:
            self._last = last
            self._hear(last)
        return self._count(conversation, tools)

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:  # noqa: ARG002 - the port's
        """Nothing: what has no record is not asked."""
        return Usage()

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:  # noqa: ARG002 - the port's
        """Never called: without a record the walk ends before."""
        msg = "the record ends here"
        raise RunStateError(msg)

    def _hear(self, last: Sequence[object]) -> None:
        match last:
            case [AssistantMessage() as asked, ToolMessage() as answered]:
                for call, result in zip(asked.tool_calls, answered.results, strict=False):
                    if call.name == "commit" and not result.is_error:
                        self.heard[str(json.loads(result.text)["commit"])] = result.text
            case _:
                pass


def walk_again(run: SearchRun, disclosure: Disclosure, count: CountTokens) -> Mapping[str, str]:
    """The answers to commits, by commit, as far as the records of their islands lead; some may never have been sent.

    Where an island's records and this walk part, the walk of that island ends, and what it heard until then stays.

    Args:
        run: A search with its initial program evaluated.
        disclosure: Of the task and the policy that the run had.
        count: How the recorded model counts tokens.

    Raises:
        RunStateError: A record is damaged.
    """
    header, journal = run.journal.get("run") or {}, run.journal
    model = _Listener(str(header["model"]), int(header["context_tokens"]), count)
    token = CancelToken()
    context = RunContext(
        run_id=run.run_id,
        settings=run.settings,
        task=run.task.view,
        ports=RunPorts(
            model=model,
            evaluator=ReplayEvaluator(journal),
            analyst=ReplayAnalyst(journal) if run.settings.analysis else None,
            disclosure=disclosure,
            journal=journal,
            ledger=Ledger(Budget()),
        ),
        initial=load_entry(INITIAL, journal),
        steps=Steps(journal, Mode.REPLAY),
        exchange=Exchange(token, wait_seconds=0.0),
        token=token,
        system=texts.system_prompt(run.settings, run.task.view),
        tools=texts.tool_specs(run.settings, run.task.view),
        on_event=lambda _: None,
    )
    for number in range(run.settings.islands):
        try:
            Island(context, number).run()
        except EvolvariumError:  # the end of an unfinished record, or a conversation of another digest
            continue
    return model.heard
