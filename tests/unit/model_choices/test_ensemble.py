"""Ensembles: who answers follows from the seed alone, by weight; sizes are those that suit every member."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import pytest

from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Reply,
    Sampling,
    StopReason,
    ToolSpec,
    Usage,
    UserMessage,
)
from orchestrator.llm.ensemble import EnsembleModel
from orchestrator.ports import Ensemble, LanguageModel

ASKED = Conversation(system="", messages=(UserMessage(text="hello"),))


@dataclass
class Named:
    """Says its name."""

    name: str
    context_tokens: int = 1000
    tokens: int = 10
    is_repeatable: bool = True

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        assert conversation is ASKED
        return self.tokens + len(tools)

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        assert conversation is ASKED
        assert not tools
        return Usage(output_tokens=sampling.max_output_tokens, usd=Decimal(self.tokens))

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        assert conversation is ASKED
        assert not tools
        assert sampling
        return Reply(message=AssistantMessage(text=self.name), usage=Usage(), stop=StopReason.END)


def ensemble(*weights: float, name: str = "team") -> EnsembleModel:
    models: list[LanguageModel] = [Named(name=f"m{number}", tokens=number) for number in range(len(weights))]
    return EnsembleModel(name, list(zip(models, weights, strict=True)))


def test_an_ensemble_is_one_and_a_member_is_none() -> None:
    assert isinstance(ensemble(1), Ensemble)
    assert not isinstance(Named(name="m"), Ensemble)


def test_the_seed_alone_says_who_answers_and_it_is_who_is_named() -> None:
    first, again = ensemble(1, 1, 1), ensemble(1, 1, 1)
    for seed in range(50):
        sampling = Sampling(seed=seed, max_output_tokens=7)
        member = first.member(sampling)
        assert member.name == again.member(Sampling(seed=seed, temperature=1.0)).name
        assert first.complete(ASKED, (), sampling).message.text == member.name
        assert first.worst_case(ASKED, (), sampling) == member.worst_case(ASKED, (), sampling)


def test_ensembles_of_other_names_draw_otherwise() -> None:
    one, other = ensemble(1, 1, name="one"), ensemble(1, 1, name="other")
    draws = [(one.member(Sampling(seed=seed)).name, other.member(Sampling(seed=seed)).name) for seed in range(64)]
    assert len(set(draws)) == 4


def test_members_answer_in_proportion_to_their_weights() -> None:
    found = Counter(ensemble(1, 2, 5).member(Sampling(seed=seed)).name for seed in range(4000))
    assert [round(found[name] / 500) for name in ("m0", "m1", "m2")] == [1, 2, 5]


def test_a_member_of_next_to_no_weight_at_the_end_does_not_make_a_draw_fall_through() -> None:
    drawn = {ensemble(1e6, 1e-9).member(Sampling(seed=seed)).name for seed in range(500)}
    assert drawn == {"m0"}


def test_sizes_suit_every_member() -> None:
    members = [Named(name="a", context_tokens=500, tokens=30), Named(name="b", context_tokens=900, tokens=40)]
    team = EnsembleModel("team", [(members[0], 1), (members[1], 1)])
    assert (team.name, team.context_tokens, team.count_tokens(ASKED, ())) == ("team", 500, 40)
    assert team.is_repeatable
    members[1].is_repeatable = False
    assert not team.is_repeatable


@pytest.mark.parametrize("weights", [(), (1, 0), (1, -1), (float("nan"),)])
def test_an_ensemble_without_members_or_with_a_weight_that_is_none_is_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="'team' needs members with positive weights"):
        ensemble(*weights)
