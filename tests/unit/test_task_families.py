"""Families of tasks: what members share, how they are named, and what is said of those that are wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.errors import InputError
from orchestrator.evaluation.new_task import new_task
from orchestrator.evaluation.task_families import members, package_name
from orchestrator.evaluation.tasks import check_task, family_folder, find_tasks, load_task, task_folder
from tests.in_process import Call, without_engine

TASKS = Path(__file__).parents[2] / "tasks"
SHIPPED = (
    "CRK21", "CRK35", "BPG18", "PO0", "PO1", "PO7", "PO10", "PO16", "PO26", "MatSci9", "MatSci6", "MatSci11",
)  # fmt: skip


@pytest.fixture
def family(tmp_path: Path) -> Path:
    """Made of the small task: one member with a text of its own, and one with a program of its own."""
    folder = new_task(tmp_path, "small_task").rename(tmp_path / "curves")
    task = yaml.safe_load((folder / "task.yaml").read_text())
    del task["name"], task["title"]
    (folder / "task.yaml").unlink()
    document = {
        "version": 1,
        "title": "Curves",
        "task": task,
        "texts": {"shape": "no shape", "unit": "m"},
        "parameters": {"depth": 1, "fit": {"restarts": 3}},
        "groups": {"round": {"texts": {"shape": "a round shape"}, "parameters": {"depth": 2}}},
    }
    (folder / "family.yaml").write_text(yaml.safe_dump(document))
    (folder / "description.md").write_text("Find ${shape} in ${unit}, for $$1.\n")
    program = (folder / "initial" / "program.py").read_text()
    (folder / "initial" / "program.py.template").write_text(f'"""For ${{shape}}."""\n\n{program}')
    (folder / "initial" / "program.py").unlink()
    for name, fields in {"Circle": {"group": "round"}, "line": {"texts": {"unit": "km"}}}.items():
        (folder / name).mkdir()
        (folder / name / "task.yaml").write_text(yaml.safe_dump({"title": name, **fields}))
    (folder / "line" / "initial").mkdir()
    (folder / "line" / "initial" / "program.py").write_text(program)
    return folder


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return without_engine(tmp_path / "home", monkeypatch, capsys)


def test_members_are_found_by_their_whole_names_and_by_path(family: Path) -> None:
    assert find_tasks([family.parent]) == {"curves/Circle": family / "Circle", "curves/line": family / "line"}
    assert members(family) == find_tasks([family.parent])
    assert task_folder("curves/Circle", [family.parent]) == family / "Circle"
    assert task_folder(str(family / "line"), [TASKS]) == family / "line"
    assert (package_name(family / "Circle"), package_name(TASKS / "online_bin_packing")) == (
        "curves/Circle", "online_bin_packing"
    )  # fmt: skip


def test_a_member_has_what_its_group_and_its_family_say(family: Path) -> None:
    circle, line = load_task(family / "Circle"), load_task(family / "line")
    assert (circle.name, circle.spec.title, line.name) == ("curves/Circle", "Circle", "curves/line")
    assert circle.spec.functions == line.spec.functions
    assert (circle.description, line.description) == (
        "Find a round shape in m, for $1.\n", "Find no shape in km, for $1.\n"
    )  # fmt: skip
    assert circle.initial["program.py"].startswith(b'"""For a round shape."""')
    assert set(circle.initial) == set(line.initial) == {"program.py"}
    assert b"shape" not in line.initial["program.py"]


def test_an_evaluator_is_told_the_member_and_its_parameters(family: Path) -> None:
    circle, line = load_task(family / "Circle"), load_task(family / "line")
    assert json.loads(circle.evaluator["member.json"]) == {
        "name": "Circle", "parameters": {"depth": 2, "fit": {"restarts": 3}}
    }  # fmt: skip
    assert json.loads(line.evaluator["member.json"])["parameters"]["depth"] == 1
    assert circle.evaluator["evaluate.py"] == line.evaluator["evaluate.py"]


def test_a_family_is_no_task_and_says_which_members_it_has(family: Path) -> None:
    for name, roots in (("curves", [family.parent]), (str(family), [TASKS])):
        with pytest.raises(InputError, match=r"is a family of tasks; name one of its members: curves/Circle, curves/"):
            task_folder(name, roots)


def edit(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = yaml.safe_load(file.read_text())
    change(document)
    file.write_text(yaml.safe_dump(document))


FAMILY, OWN = "family.yaml", "Circle/task.yaml"
PROBLEMS: dict[str, tuple[str, Callable[[dict[str, Any]], object], str]] = {
    "no-such-group": (OWN, lambda d: d.update(group="flat"), "`group` is 'flat'; the groups of family.yaml are round"),
    "an-unknown-key": (OWN, lambda d: d.update(network="host"), "task.yaml: `network` is not a key that is known here"),
    "a-missing-key": (OWN, lambda d: d.pop("title"), "task.yaml: `title` is missing; add it"),
    "another-name": (OWN, lambda d: d.update(name="circle"), "`name` is 'circle', but the folder is 'curves/Circle'"),
    "an-unknown-family-key": (FAMILY, lambda d: d.update(members=[]), "family.yaml: `members` is not a key"),
    "a-later-version": (FAMILY, lambda d: d.update(version=2), "family.yaml: `version` is 2: must be 1"),
    "a-text-that-is-none": (OWN, lambda d: d.update(texts={"shape": 3}), "task.yaml: `texts.shape` is 3: must be text"),
    "a-missing-text": (FAMILY, lambda d: d["texts"].pop("unit"), "description.md: ${unit} is no text of 'curves/Circ"),
    "a-wrong-shared-key": (FAMILY, lambda d: d["task"].update(fitness="speed"), "task.yaml: `fitness` is 'speed'"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_wrong_with_a_member_is_named(family: Path, name: str) -> None:
    file, change, problem = PROBLEMS[name]
    edit(family / file, change)
    (found,) = check_task(family / "Circle")
    assert problem in found


def test_a_dollar_sign_that_begins_nothing_is_a_problem(family: Path) -> None:
    (family / "description.md").write_text("It costs $ 5.\n")
    (found,) = check_task(family / "line")
    assert found == (
        "description.md: has a '$' that begins no placeholder; write $$ for the sign itself, or ${name}"
    )  # fmt: skip


def test_a_text_that_would_grow_without_end_is_a_problem_before_it_is_made(family: Path) -> None:
    (family / "description.md").write_text("${unit}" * 25_000)
    edit(family / FAMILY, lambda d: d["texts"].update(unit="x" * 200_000))
    assert any("more than 4194304 characters with the texts" in found for found in check_task(family / "Circle"))


def test_a_template_beside_the_file_that_it_would_become_is_a_problem(family: Path) -> None:
    (family / "initial" / "program.py").write_text("own = 1\n")
    found = " ".join(check_task(family / "Circle"))
    assert "initial/program.py.template: would become 'program.py', which is there, too; remove one" in found


def test_a_folder_is_taken_by_its_path_and_a_name_by_the_roots(family: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert family_folder(str(family), [TASKS]) == family
    assert family_folder("curves", [family.parent]) == family
    monkeypatch.chdir(family.parent)
    assert family_folder("./curves", [TASKS, Path("/nowhere")]) == Path("curves")
    assert family_folder("curves/../curves", [family.parent]) == Path("curves/../curves")


def test_a_file_that_is_made_for_members_cannot_be_written_by_hand(family: Path) -> None:
    (family / "evaluator" / "member.json").write_text("{}")
    (found,) = check_task(family / "line")
    assert found == "evaluator/member.json: is made for every member of the family; rename the file"


def test_a_task_of_no_family_keeps_its_dollar_signs(tmp_path: Path) -> None:
    package = new_task(tmp_path, "small_task")
    (package / "description.md").write_text("It costs $price.\n")
    assert load_task(package).description == "It costs $price.\n"


def test_the_commands_know_members(call: Call, family: Path) -> None:
    code, listed, _ = call("task", "list", "--task-root", str(family.parent), "--json")
    names = {task["name"] for task in json.loads(listed)["tasks"]}
    assert {"curves/Circle", "curves/line", "symbolic_regression/PO0"} <= names
    code, checked, _ = call("task", "check", "curves/line", "--task-root", str(family.parent), "--json")
    assert (code, json.loads(checked)["name"]) == (0, "curves/line")
    shutil.rmtree(family / "initial")
    code, broken, _ = call("task", "check", str(family / "Circle"), "--json")
    assert code == 2
    assert "initial/: is not a folder" in json.loads(broken)["problems"][0]


def test_the_twelve_equations_are_a_family() -> None:
    found = members(TASKS / "symbolic_regression")
    assert set(found) == {f"symbolic_regression/{name}" for name in SHIPPED}
    assert [name for name, folder in found.items() if check_task(folder)] == []
