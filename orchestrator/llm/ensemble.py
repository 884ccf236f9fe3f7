"""Several models under one name; the seed of a request says which of them answers it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

from orchestrator.domain.conversation import Conversation, Reply, Sampling, ToolSpec, Usage
from orchestrator.ports import LanguageModel

_BITS = 256


class EnsembleModel:
    """Implements `ports.models.Ensemble`: each request is answered by a member, drawn by weight. Thread-safe."""

    def __init__(self, name: str, members: Sequence[tuple[LanguageModel, float]]) -> None:
        """Ask nobody yet.

        Args:
            name: Of the ensemble, for records; with a request's seed it decides who answers.
            members: Models with their weights, at least one; weights are positive and need not add up to anything.

        Raises:
            ValueError: There is no member, or a weight is not positive.
        """
        if not members or any(not weight > 0 for _, weight in members):
            msg = f"ensemble {name!r} needs members with positive weights"
            raise ValueError(msg)
        self._name = name
        self._members = tuple(model for model, _ in members)
        self._bounds = tuple(accumulate(Fraction(weight) for _, weight in members))  # exact, so the last bound is met

    @property
    def name(self) -> str:
        """Of the ensemble; what a reply costs is its member's."""
        return self._name

    @property
    def context_tokens(self) -> int:
        """The smallest of all members: whoever answers next must be able to read the conversation."""
        return min(model.context_tokens for model in self._members)

    @property
    def is_repeatable(self) -> bool:
        """Whether all members are."""
        return all(model.is_repeatable for model in self._members)

    def member(self, sampling: Sampling) -> LanguageModel:
        """See `ports.models.Ensemble`; equal seeds give equal members."""
        key = json.dumps([sampling.seed, "ensemble", self._name])
        drawn = int.from_bytes(hashlib.sha256(key.encode()).digest(), "big")
        at = self._bounds[-1] * Fraction(drawn, 1 << _BITS)
        return next(model for model, bound in zip(self._members, self._bounds, strict=True) if at < bound)

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        """The largest count of all members."""
        return max(model.count_tokens(conversation, tools) for model in self._members)

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        """That of the member which answers."""
        return self.member(sampling).worst_case(conversation, tools, sampling)

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        """The next message of the member which answers.

        Raises:
            ModelError: As the member's.
            Cancelled: Likewise.
        """
        return self.member(sampling).complete(conversation, tools, sampling)
