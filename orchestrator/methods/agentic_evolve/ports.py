"""What AgenticEvolve is handed; `bootstrap` wires it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from orchestrator.domain.verdicts import Verdict
from orchestrator.ports import AnalysisResult, Analyst, Evaluator, Journal, LanguageModel
from orchestrator.runtime.ledger import Ledger


class Disclosure(Protocol):
    """Decides what of a result may reach a model. Pure: equal results give equal answers."""

    def verdict(self, verdict: Verdict) -> Mapping[str, Any]:
        """`{"metrics": {name: number} or null, "failure": {ending, exception, file, line, message} or null}`."""
        ...

    def analysis(self, result: AnalysisResult) -> str:
        """What the script printed, bounded, with a line on how much was cut."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPorts:
    """Everything outside the method."""

    model: LanguageModel
    evaluator: Evaluator
    """On the split that guides the search."""
    analyst: Analyst | None
    """None: the configuration without analyses, which must not be handed one."""
    disclosure: Disclosure
    journal: Journal
    """Of this run, exclusively owned; may hold the steps of an earlier process."""
    ledger: Ledger
    """Empty: what an earlier process spent is charged again from the journal. Ceilings on tokens and US dollars must
    be per island, or the order in which islands spend would decide where they stop."""
