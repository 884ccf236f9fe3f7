"""How the structure of a placement rule may change. No operator but the reach's changes what a rule chooses."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from orchestrator.llm.offline.placement_rules import MAX_REACH, MAX_ROOMS, MAX_SHARES, PlacementTask, Row, Rule


def add_share(rule: Rule, task: PlacementTask, chance: random.Random) -> Rule:  # noqa: ARG001 - an operator's signature
    """Another knot in time; the first time, three of them instead of one. The rule's choices stay the same."""
    if not rule.has_fading:
        shares: Row = (0.0, round(chance.uniform(0.15, 0.5), 2), 1.0)
    else:
        first = chance.randrange(len(rule.shares) - 1)
        weight = chance.uniform(0.35, 0.65)
        new = round(rule.shares[first] * (1 - weight) + rule.shares[first + 1] * weight, 3)
        shares = tuple(sorted({*rule.shares, new}))
    costs = tuple(tuple(rule.cost(share, room) for room in rule.rooms) for share in shares)
    crowding = tuple(tuple(rule.crowding_cost(share, room) for room in rule.crowding_rooms) for share in shares)
    return replace(rule, shares=shares, costs=costs, crowding=crowding if rule.crowding else ())


def add_rooms(rule: Rule, task: PlacementTask, chance: random.Random) -> Rule:
    """Two more knots of the costs; the rule's choices stay the same."""
    free = sorted(set(range(1, task.capacity)) - set(rule.rooms))
    rooms = tuple(sorted({*rule.rooms, *chance.sample(free, k=min(2, len(free)))}))
    costs = tuple(tuple(rule.cost(share, room) for room in rooms) for share in rule.shares)
    return replace(rule, rooms=rooms, costs=costs)


def add_crowding(rule: Rule, task: PlacementTask, chance: random.Random) -> Rule:
    """The crowding term with weight 0, or two more knots of it; the rule's choices stay the same."""
    if rule.crowding:
        free = sorted(set(range(task.smallest + 1, task.capacity - task.smallest)) - set(rule.crowding_rooms))
        rooms = tuple(sorted({*rule.crowding_rooms, *chance.sample(free, k=min(2, len(free)))}))
    else:
        free = sorted(range(task.smallest + 1, task.capacity - task.smallest))
        fixed = {task.smallest - 1, task.smallest, task.capacity - task.smallest}
        rooms = tuple(sorted(fixed | set(chance.sample(free, k=min(3, len(free))))))
        rule = replace(rule, reach=chance.randint(1, MAX_REACH // 2))
    crowding = tuple(tuple(rule.crowding_cost(share, room) for room in rooms) for share in rule.shares)
    return replace(rule, crowding_rooms=rooms, crowding=crowding)


def change_reach(rule: Rule, task: PlacementTask, chance: random.Random) -> Rule:  # noqa: ARG001 - an operator's signature
    """Another distance at which rooms crowd each other, at equal total weight."""
    reach = chance.choice([reach for reach in range(1, MAX_REACH + 1) if abs(reach - rule.reach) in {1, 2}])
    return replace(
        rule, reach=reach, crowding=tuple(tuple(v * rule.reach / reach for v in row) for row in rule.crowding)
    )


def keep(rule: Rule, task: PlacementTask, chance: random.Random) -> Rule:  # noqa: ARG001 - an operator's signature
    """The same structure; only the values are adjusted."""
    return rule


Operator = Callable[[Rule, PlacementTask, random.Random], Rule]
OPERATORS: Mapping[str, Operator] = {
    "a change with time": add_share,
    "a cost of crowding": add_crowding,
    "a finer cost curve": add_rooms,
    "another reach of crowding": change_reach,
    "the values alone": keep,
}


def applicable(rule: Rule) -> list[str]:
    """Names of the operators that may change this rule; structure stays bounded."""
    allowed = {
        "a change with time": len(rule.shares) < MAX_SHARES,
        "a cost of crowding": len(rule.crowding_rooms) < MAX_ROOMS // 2,
        "a finer cost curve": len(rule.rooms) < MAX_ROOMS,
        "another reach of crowding": bool(rule.crowding),
        "the values alone": True,
    }
    return [name for name in OPERATORS if allowed[name]]
