"""Scores dispatching rules on the dynamic job shop; runs in the evaluator container, beside the hidden seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evaluator_api import Program, Ragged, Refused
from instances import FILE, Instances
from rules import follow_in_turns
from scoring import ast_nodes_feature, by_scenario, geometric_mean_ratio
from simulation import Starved

if TYPE_CHECKING:
    from rules import Answer
    from shop import Decisions

PARTS = 2
"""Of the simulations: one goes on while the program decides for the other."""


def generate(seed: int, split: str) -> dict[str, bytes]:  # noqa: ARG001 - the seed differs per split already
    """The files of a split: seeds of 5 scenarios x 10 simulations, and how tardy the reference rule is on them."""
    return {FILE: Instances.drawn(seed).to_json()}


def evaluate(program: Program, data: Path, split: str) -> dict[str, float]:  # noqa: ARG001 - all splits are alike
    """Fitness 1 / ratio, the ratio of mean tardiness to the reference rule's, and the two features."""
    instances = Instances.from_json((data / FILE).read_bytes())
    shop = instances.shop()
    with program.open(len(shop)) as copies:

        def ask(decisions: Decisions) -> Answer:
            waiting = {name: Ragged(values, decisions.lengths) for name, values in decisions.attributes.items()}
            call = copies.begin("score", decisions.ids, **waiting, now=decisions.now, queue_length=decisions.lengths)
            return lambda: call.result().values

        try:
            deviation = follow_in_turns(shop, ask, parts=PARTS)
        except Starved as error:
            raise Refused("starved") from error
    ratio = geometric_mean_ratio(by_scenario(shop.tardiness), instances.reference)
    return {
        "fitness": 1 / ratio,
        "tardiness_ratio": ratio,
        "ast_nodes": ast_nodes_feature(program.nodes),
        "deviation": deviation,
    }
