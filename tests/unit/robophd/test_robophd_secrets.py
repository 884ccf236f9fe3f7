"""What no model may learn: gold queries, their rows and names, scores on selection, and anything of final databases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.domain.conversation import Conversation
from orchestrator.domain.sql import QueryResult, QueryStatus
from orchestrator.methods.robophd.questions import DataView
from tests.evolution_lab import EvolutionLab, replace_evolver, small
from tests.evolution_world import World
from tests.scripted_evolver import call, calls, first_sections, made, results_of, revised

GOLD = ["GOLDSQL-7f3a", "goldname_7f3a", "GOLDROW-7f3a", "770077"]
"""In the gold queries, the names of their columns, and their rows."""
ASKED_ON_SELECTION = "SELECTION-51cc"
EVERYTHING = [call("read_errors", id="naive", database=f"demo/d{n}") for n in range(5)]
TRIES = [call("try_tool", database=f"demo/d{n}") for n in range(5)]


def curious(*skills: str, note: str = "") -> list[Any]:
    """Reads whatever there is, tries the tool everywhere, and revises it twice."""
    files = ["agent.json", "eval_instructions.md", "tools/analyze.py", "reasoning.md"]
    reading = [call("read_package", id=name, file=file) for name in ("naive", "p02", "p03") for file in files]
    more = [call("read_errors", id=name, database=f"demo/d{n}") for name in ("p02", "p03") for n in range(5)]
    whole = made(*skills, note=note)
    return [
        calls(*reading, *EVERYTHING, *more),
        calls(*whole.tool_calls[:-1], *TRIES, whole.tool_calls[-1]),
        calls(*EVERYTHING, *more, *revised(*skills, "b").tool_calls),
        calls(*EVERYTHING, *more, *revised(*skills, "c").tool_calls),
    ]


def secretive(world: World, *, iterations: int = 4) -> EvolutionLab:
    """A run whose gold could be recognised anywhere; half of it can never be reached by a query."""
    turns = {2: curious(), 3: curious("a"), 4: [*curious("b")[:1], made("x"), *curious("b")[2:]]}
    settings = replace_evolver(small(iterations=iterations, answers={"corrections": 2}), deep_focus=2)
    lab = EvolutionLab(world, turns, settings)
    canary = QueryResult(
        status=QueryStatus.OK, columns=("goldname_7f3a", "b"), rows=(("GOLDROW-7f3a", 770077), ("x", 1.5))
    )
    lab.gold = {name: canary if name.endswith(("q1", "q3")) else result for name, result in world.gold.items()}
    marked = {name: tuple(_marked(question) for question in questions) for name, questions in lab.data.select.items()}
    lab.data = DataView(evolve=lab.data.evolve, select=marked)
    for name in world.gold:  # as a run's journal has it
        lab.journal.put(f"q/{name.replace('/', ':')}/gold", {"gold": GOLD, "sql": "SELECT 'GOLDSQL-7f3a'"})
    lab.journal.put_blob(" ".join(GOLD).encode())
    return lab


def _marked(question: Any) -> Any:
    return type(question)(
        id=question.id,
        database=question.database,
        text=question.text,
        evidence=ASKED_ON_SELECTION,
        group="GOLDSQL-7f3a",
    )


def everything_said(conversations: list[Conversation]) -> str:
    return "\n".join(f"{one.system}\n{one.messages!r}" for one in conversations)


@pytest.fixture(scope="module")
def lab(world: World) -> EvolutionLab:
    lab = secretive(world)
    lab.run()
    return lab


@pytest.mark.parametrize("secret", GOLD)
def test_no_model_hears_of_gold(lab: EvolutionLab, secret: str) -> None:
    assert any(secret in record for record in lab.journal.entries.values())
    evolver = everything_said(lab.evolver.conversations)
    answerer = everything_said([conversation for _, conversation, _ in lab.answerer.asked])
    assert "item2" in evolver, "the search would find what is there"
    assert "item2" in answerer
    assert secret not in evolver
    assert secret not in answerer
    specs = repr(lab.evolver.tools)
    assert secret not in specs


@pytest.mark.parametrize("secret", GOLD)
def test_no_package_no_draft_and_no_event_holds_gold(lab: EvolutionLab, secret: str) -> None:
    packages = [key for key in lab.journal.entries if key.startswith("package/")]
    assert packages == ["package/naive", "package/p02", "package/p03", "package/p04"]
    for key in packages:
        for digest in lab.record(key)["files"].values():
            assert secret.encode() not in lab.journal.get_blob(digest)
        assert secret not in lab.journal.entries[key]
    assert secret not in repr(lab.events)


def test_the_evolver_read_everything_it_could(lab: EvolutionLab) -> None:
    found = [one for n in (2, 3, 4) for one in results_of(lab.conversation(n))]
    assert {name for name, _, is_error in found if not is_error} >= {"read_package", "read_errors", "try_tool", "write"}
    shapes = {
        shape
        for name, text, bad in found
        if name == "read_errors" and not bad
        for e in json.loads(text)["errors"]
        for shape in e["difference"]
    }
    assert len(shapes) > 2


def test_what_the_records_of_a_contest_and_its_requests_say_is_not_what_the_judge_knows(lab: EvolutionLab) -> None:
    own = [
        key for key in lab.journal.entries if key.startswith(("it/", "tool/", "hybrid/", "answer/", "select/", "run"))
    ]
    groups = [key for key in own if "GOLDSQL-7f3a" in lab.journal.entries[key]]
    assert groups == []  # the group of a selection question stays where it came from
    for secret in GOLD:
        assert [key for key in own if secret in lab.journal.entries[key]] == []


def test_nothing_of_selection_reaches_the_evolver(lab: EvolutionLab) -> None:
    said = everything_said(lab.evolver.conversations)
    assert ASKED_ON_SELECTION in everything_said([conversation for _, conversation, _ in lab.answerer.asked])
    for secret in (ASKED_ON_SELECTION, "demo/s0", "demo/s1", "item5", "item6"):
        assert secret not in said


def test_scores_on_selection_change_nothing_that_the_evolver_is_told(world: World, lab: EvolutionLab) -> None:
    other = secretive(world)
    other.gold = {
        name: QueryResult(status=QueryStatus.OK, columns=("x",), rows=(("never",),)) if "/s" in name else result
        for name, result in other.gold.items()
    }
    result = other.run()
    assert all(right == 0 for right, _ in result.selection.values())
    assert other.evolver.conversations == lab.evolver.conversations


def test_selection_comes_after_everything_that_evolves(lab: EvolutionLab) -> None:
    keys = list(lab.journal.entries)
    first = next(place for place, key in enumerate(keys) if ":s0" in key and not key.startswith("q/"))
    assert max(place for place, key in enumerate(keys) if key.startswith("it/")) < first
    opened = lab.databases.opened
    assert all("/d" in name for name in opened[: opened.index("demo/s0")])


def test_only_databases_of_contests_and_selection_are_ever_opened(world: World, lab: EvolutionLab) -> None:
    """What the run is handed has no place for final databases, so it can know nothing of them."""
    assert set(lab.databases.opened) <= {*world.evolve, *world.select}
    assert set(DataView.__dataclass_fields__) == {"evolve", "select"}


def test_groups_of_questions_reach_no_model(world: World) -> None:
    lab = EvolutionLab(world, {2: curious("a")[1:]}, small(iterations=2))
    lab.run()
    assert "group-2-1" in lab.journal.entries["it/01/plan"]
    assert "group-" not in everything_said(lab.evolver.conversations)
    assert "group-" not in everything_said([conversation for _, conversation, _ in lab.answerer.asked])
    assert "group" not in "".join(first_sections(lab.conversation(2)).values())
