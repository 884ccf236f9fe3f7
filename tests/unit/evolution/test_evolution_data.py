"""The data of an evolution: several data sets as one, dealt out by database, and what the method sees of them."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from orchestrator.bootstrap.robophd.choices import DatasetChoice, EvolveChoices
from orchestrator.bootstrap.robophd.config_file import load_file, settings_from
from orchestrator.bootstrap.robophd.data import EvolveData, data_view, load_evolve_data, view_of
from orchestrator.bootstrap.robophd.header import data_record, require_same
from orchestrator.bootstrap.robophd.site import require_different
from orchestrator.bootstrap.sql.choices import Layout
from orchestrator.errors import InputError, RunStateError
from orchestrator.sql.demo.collections import write_collections
from tests.command_line import ROOT
from tests.evolution_data import CANARY, write_list
from tests.recorded_evolution import RecordedEvolutions


def load(*lists: Path, databases: tuple[str, ...] | None = None) -> EvolveData:
    chosen = tuple(DatasetChoice(kind=Layout.JSONL, root=str(path), databases=databases) for path in lists)
    return load_evolve_data(EvolveChoices(datasets=chosen))


def test_data_sets_of_one_kind_are_kept_apart_by_name(tmp_path: Path) -> None:
    data = load(write_list(tmp_path / "a", ("garden", "harbor")), write_list(tmp_path / "b", ("museum", "theatre")))
    assert data.names == ("jsonl", "jsonl-2")
    assert list(data.paths) == ["garden", "harbor", "museum", "theatre"]
    assert len({question.id for question in data.questions}) == len(data.questions) == 24
    assert data.questions[0].id == "jsonl/garden-0"
    assert data.questions[-1].id == "jsonl-2/theatre-5"


def test_the_page_s_small_configuration_runs_on_the_demo_s_collections(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "robophd.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(datasets:\n  - kind: jsonl\n.*?)```", page, re.DOTALL)
    write_collections(tmp_path / "demo_collections")
    path = tmp_path / "evolution.yaml"
    path.write_text(example)
    choices, fields = load_file(path)
    data = load_evolve_data(choices)
    settings = settings_from(fields)
    split = data.split(settings.seed, choices.shares)
    assert [len(data.of(part)) for part in dataclasses.astuple(split)] == [6, 6, 6]
    assert settings.iterations == 2


def test_a_database_that_two_data_sets_have_is_refused_with_both_files(tmp_path: Path) -> None:
    one, other = write_list(tmp_path / "a"), write_list(tmp_path / "b", ("museum", "theatre"))
    with pytest.raises(InputError) as error:
        load(one, other)
    assert "two data sets have a database 'museum'" in str(error.value)
    assert str(tmp_path / "a" / "museum.sqlite") in str(error.value)
    assert str(tmp_path / "b" / "museum.sqlite") in str(error.value)
    with pytest.raises(InputError, match="two data sets have a database 'garden'"):
        load(one, one)


def test_one_file_under_two_names_could_be_on_both_sides_and_is_refused() -> None:
    with pytest.raises(InputError, match="databases 'a' and 'c' are the same file"):
        require_different({"a": {"source": "1"}, "b": {"source": "2"}, "c": {"source": "1"}})


def test_another_layout_is_named_as_both_command_line_and_file_give_it(tmp_path: Path) -> None:
    path = write_list(tmp_path)
    wrong = DatasetChoice(kind=Layout.BIRD, root=str(path.parent))
    with pytest.raises(InputError) as error:
        load_evolve_data(EvolveChoices(datasets=(wrong,)))
    assert "is laid out like jsonl, not like bird; give --jsonl " in str(error.value)
    assert "on the command line, or `kind: jsonl` in a configuration file" in str(error.value)


def test_too_few_databases_are_refused(tmp_path: Path) -> None:
    path = write_list(tmp_path)
    with pytest.raises(InputError, match="2 databases cannot be dealt out"):
        load(path, databases=("garden", "museum")).split(0, (7, 3, 3))
    assert [len(part) for part in dataclasses.astuple(load(path).split(0, (7, 3, 3)))] == [1, 1, 1]


def test_what_a_data_set_lacks_is_recorded(tmp_path: Path) -> None:
    path = write_list(tmp_path)
    (tmp_path / "harbor.sqlite").unlink()
    write_list(tmp_path / "more", ("harbor", "theatre"))
    data = load(path, tmp_path / "more" / "questions.jsonl")
    assert data.orphans == ("6 questions are left out, whose databases are missing: harbor",)
    before = data_record(data, data.split(0, (1, 1, 1)))
    assert before["orphans"] == list(data.orphans)
    (tmp_path / "garden.sqlite").unlink()
    changed = load(path, tmp_path / "more" / "questions.jsonl")
    now = data_record(changed, changed.split(0, (1, 1, 1)))
    header = {"data": before, "policy": {}, "images": {}, "databases": {}}
    with pytest.raises(RunStateError, match="the data has changed since the run began"):
        require_same(header, {**header, "data": now})
    require_same(header, dict(header))


def test_the_lists_decide_the_digest_and_the_order_of_data_sets_the_ids(tmp_path: Path) -> None:
    path = write_list(tmp_path)
    before = load(path).digest
    path.write_text(path.read_text().replace("highest", "lowest"))
    assert load(path).digest != before


def test_the_method_is_handed_no_gold_query_and_nothing_of_final_databases(tmp_path: Path) -> None:
    data = load(write_list(tmp_path, canary=CANARY))
    split = data.split(3, (1, 1, 1))
    view = data_view(data.questions, split)
    assert set(view.evolve) == set(split.evolve)
    assert set(view.select) == set(split.select)
    text = json.dumps(dataclasses.asdict(view))
    assert CANARY not in text
    assert split.final[0] not in text
    for question in data.questions:
        assert question.gold is not None
        assert question.gold not in text


def test_questions_with_equal_gold_queries_are_one_group_on_one_database_alone(tmp_path: Path) -> None:
    path = write_list(tmp_path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    more = [
        {"id": "twin", "database": "garden", "question": "Count them.", "gold": "select  count(*) from plants ;"},
        {"id": "other", "database": "museum", "question": "Count them.", "gold": "SELECT count(*) FROM plants"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, *more]))
    groups = {question.id: view_of(question).group for question in load(path).questions}
    equal = [{one for one, group in groups.items() if group == groups[id_]} for id_ in groups]
    assert [one for one in equal if len(one) > 1] == [{"jsonl/garden-0", "jsonl/twin"}] * 2


def test_a_database_without_a_question_that_can_be_evaluated_is_in_no_part(tmp_path: Path) -> None:
    evolutions = RecordedEvolutions(tmp_path)
    site = evolutions.site()
    name = site.split.evolve[0]
    view = data_view([q for q in site.data.questions if q.database != name], site.split)
    assert view.evolve == {}
    assert set(view.select) == set(site.split.select)
