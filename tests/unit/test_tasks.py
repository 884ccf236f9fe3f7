"""Task packages: what is accepted, and what is said about the rest."""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestrator.domain.policies import Limits, Purpose
from orchestrator.errors import InputError, TaskError
from orchestrator.evaluation.new_task import new_task
from orchestrator.evaluation.task_code import TAKEN_MODULES
from orchestrator.evaluation.task_spec import PATTERNS, TaskSpec
from orchestrator.evaluation.tasks import check_task, find_tasks, load_task, task_folder, unused_parts

TASKS = Path(__file__).parents[2] / "tasks"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return new_task(tmp_path, "small_task")


def edited(package: Path, change: Callable[[dict[str, Any]], object]) -> list[str]:
    """Problems after a change to task.yaml."""
    file = package / "task.yaml"
    document = yaml.safe_load(file.read_text())
    change(document)
    without_shared_parts = json.loads(json.dumps(document))  # which would be written as aliases
    file.write_text(yaml.safe_dump(without_shared_parts, sort_keys=False))
    return check_task(package)


def test_every_shipped_task_is_well_formed() -> None:
    found = find_tasks([TASKS])
    assert "online_bin_packing" in found
    assert not {name: problems for name, folder in found.items() if (problems := check_task(folder))}


def test_the_description_of_bin_packing_states_what_agents_generate_instances_from() -> None:
    description = " ".join(load_task(TASKS / "online_bin_packing").description.split())
    assert "Every sequence has 120 items" in description
    assert "drawn independently and uniformly from 20 to 100" in description
    assert "Every bin has capacity 150" in description


def test_the_view_of_a_task_holds_nothing_of_its_evaluator() -> None:
    task = load_task(TASKS / "online_bin_packing")
    assert task.view.initial is task.initial
    assert not any(code in repr(task.view).encode() for code in task.evaluator.values())
    assert task.view.features == ("ast_nodes", "deviation")


def test_a_new_task_is_well_formed_and_named_as_asked(package: Path) -> None:
    assert check_task(package) == []
    task = load_task(package)
    assert (task.name, task.spec.title) == ("small_task", "Small task")
    assert set(task.initial) == {"program.py"}
    assert "small_task" in (package / "README.md").read_text()
    assert ast.parse(task.evaluator["evaluate.py"])


def test_a_new_task_may_have_a_program_of_two_modules(tmp_path: Path) -> None:
    task = load_task(new_task(tmp_path, "two", two_modules=True))
    assert (set(task.initial), task.spec.program.entry) == ({"program.py", "model.py"}, "program.py")
    assert b"from model import" in task.initial["program.py"]
    assert "these two files" in task.description
    assert "these two files" not in load_task(new_task(tmp_path, "one")).description


def test_a_new_task_overwrites_nothing(package: Path) -> None:
    before = (package / "task.yaml").read_bytes()
    with pytest.raises(InputError, match="exists already"):
        new_task(package.parent, "small_task")
    assert (package / "task.yaml").read_bytes() == before


@pytest.mark.parametrize("name", ["", "Big", "a-b", "../up", "1a", "x" * 49, "a/b"])
def test_a_task_needs_a_plain_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="is not possible; use up to 48"):
        new_task(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


def test_tasks_are_found_by_name_and_by_path(package: Path) -> None:
    assert task_folder("small_task", [package.parent]) == package
    assert task_folder(str(package), [TASKS]) == package
    with pytest.raises(InputError, match=r"no task 'other': .*online_bin_packing"):
        task_folder("other", [TASKS])


def test_the_first_root_wins(package: Path, tmp_path: Path) -> None:
    second = new_task(tmp_path / "more", "small_task")
    assert find_tasks([package.parent, second.parent])["small_task"] == package
    assert find_tasks([tmp_path / "absent"]) == {}


PROBLEMS: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda d: d.update(network="host"), r"task.yaml: `network` is not a key that is known here; correct or remove it"),
    (lambda d: d.pop("fitness"), r"task.yaml: `fitness` is missing; add it"),
    (lambda d: d.update(version=2), r"`version` is 2: must be 1"),
    (lambda d: d.update(name="Small"), r"`name` is 'Small': must be up to 48 lower-case letters"),
    (lambda d: d.update(title=3), r"`title` is 3: must be text"),
    (lambda d: d.update(features=[]), r"`features` is \[\]: must have at least 1 entries"),
    (lambda d: d.update(metrics=[]), r"`metrics` is \[\]: must be a mapping"),
    (lambda d: d.update(name="other_task"), r"`name` is 'other_task', but the folder is 'small_task'; make them equal"),
    (lambda d: d.update(description="../secret.md"), r"`description` is '../secret.md': .*is not allowed"),
    (lambda d: d.update(description="/etc/passwd"), r"`description` is '/etc/passwd': .*is not allowed"),
    (lambda d: d.update(evaluator=".."), r"`evaluator` is '..': .*is not allowed"),
    (lambda d: d.update(fitness="speed"), r"`fitness` is 'speed'; it must be one of the declared `metrics`"),
    (lambda d: d["quality"].update(metric="speed"), r"`quality.metric` is 'speed'"),
    (lambda d: d["quality"].update(direction="up"), r"`quality.direction` is 'up'"),
    (lambda d: d["features"].append({"metric": "fitness"}), r"`features` are .*from the fitness"),
    (lambda d: d["features"].append({"metric": "bias"}), r"`features` are"),
    (lambda d: d["features"][0].update(bins=1), r"`features.0.bins` is 1"),
    (lambda d: d.update(search_split="holdout"), r"`search_split` is 'holdout'; declared splits are"),
    (
        lambda d: d["splits"].update(x={"source": "web", "title": "t"}),
        r"`splits.x`: `source` is 'web'; it must be 'generated', 'files'",
    ),
    (lambda d: d["splits"].update(x={"title": "t"}), r"`splits.x`: needs the key `source`"),
    (
        lambda d: d["splits"].update(x={"source": "files", "title": "t", "files": {"a": "../a"}}),
        r"`splits.x.files.files.a` is '../a': .*is not allowed",
    ),
    (lambda d: d["functions"]["estimate"]["returns"].update(like="x"), r"`returns.like` is 'x'; it must be one of"),
    (lambda d: d["functions"]["estimate"]["arguments"].append({"name": "x", "dtype": "int64"}), "names repeat"),
    (lambda d: d["functions"]["estimate"]["arguments"][0].update(dtype="object"), r"`functions.estimate.*'object'"),
    (lambda d: d["functions"].update(other=d["functions"]["estimate"]), r"program.py: defines no function 'other'"),
    (
        lambda d: d["limits"].update(candidate={"network": 1}),
        r"task.yaml: `limits.candidate.network` is not a key that is known here",
    ),
    (lambda d: d["limits"].update(candidate={"wall_seconds": 1e9}), r"must be at most 3600"),
    (lambda d: d["limits"].update(root={}), r"`limits.root.*candidate"),
    (lambda d: d["messages"].update(long="x" * 301), r"`messages.long`.*must have at most 300"),
    (lambda d: d["messages"].update(escape="a\x1b[2J"), r"`messages.escape`"),
    (lambda d: d["budgets"].update(commits=0), r"`budgets.commits` is 0"),
    (lambda d: d["islands"].update(migration_percent=0), r"`islands.migration_percent` is 0"),
    (lambda d: d["program"].update(entry="main.py"), r"`program.entry` is 'main.py', but initial/main.py does not"),
    (lambda d: d.update(public="public"), r"public/: is not a folder; create it"),
]


WORDS_OF_THE_CHECKER = r"Value error|Extra inputs|Field required|Input should|pydantic|the document|validation error"


@pytest.mark.parametrize(("change", "complaint"), PROBLEMS)
def test_a_wrong_field_is_named_with_its_value(
    package: Path, change: Callable[[dict[str, Any]], object], complaint: str
) -> None:
    problems = edited(package, change)
    assert any(re.search(complaint, problem) for problem in problems), problems
    assert not re.search(WORDS_OF_THE_CHECKER, " ".join(problems)), problems
    with pytest.raises(TaskError, match=complaint):
        load_task(package)


def test_every_problem_is_told_at_once(package: Path) -> None:
    assert len(edited(package, lambda d: d.update(version=2, fitness=1, extra=1))) == 3


def test_problems_of_single_fields_between_fields_and_of_files_are_told_together(package: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        document["budgets"]["commits"] = -1
        document["search_split"] = "holdout"
        document["program"]["entry"] = "main.py"
        document["limits"]["candidate"]["pids"] = 0

    (package / "evaluator" / "evaluate.py").write_text("def (:\n")
    assert edited(package, change) == [
        "task.yaml: `budgets.commits` is -1: must be at least 1",
        "task.yaml: `search_split` is 'holdout'; declared splits are ['hidden', 'fresh']",
        "task.yaml: `limits.candidate.pids` is 0.0: must be at least 4",
        "task.yaml: `program.entry` is 'main.py', but initial/main.py does not exist; add the file",
        "evaluator/evaluate.py, line 1: is not Python: invalid syntax",
    ]
    with pytest.raises(TaskError, match=r"is not well formed: \(1\) task.yaml: .*; \(5\) evaluator/evaluate.py"):
        load_task(package)


def test_a_single_problem_stands_in_the_sentence_without_any_list(package: Path) -> None:
    edited(package, lambda d: d.update(version=2))
    with pytest.raises(TaskError, match=r"is not well formed: task.yaml: `version` is 2: must be 1$"):
        load_task(package)


def test_every_pattern_of_a_task_file_has_words() -> None:
    def patterns(schema: object) -> set[str]:
        if isinstance(schema, list):
            return set().union(*map(patterns, schema))
        if not isinstance(schema, dict):
            return set()
        own = {schema["pattern"]} if isinstance(schema.get("pattern"), str) else set()
        return own.union(schema.get("patternProperties", ()), *map(patterns, schema.values()))

    assert patterns(TaskSpec.model_json_schema()) == set(PATTERNS)


def test_a_public_folder_that_is_not_declared_is_told(package: Path) -> None:
    assert unused_parts(load_task(package)) == []
    (package / "public").mkdir()
    (note,) = unused_parts(load_task(package))
    assert "add `public: public`" in note
    (package / "public" / "a.txt").write_text("a")
    assert edited(package, lambda d: d.update(public="public")) == []
    assert unused_parts(load_task(package)) == []


def test_a_bare_name_of_a_known_task_and_of_a_folder_here_is_ambiguous(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_task(package.parent / "here", "small_task")
    monkeypatch.chdir(package.parent / "here")
    with pytest.raises(InputError, match=r"is the task .* and also a folder here; write \./small_task"):
        task_folder("small_task", [package.parent])
    assert task_folder("./small_task", [package.parent]) == Path("small_task")
    monkeypatch.chdir(package.parent)
    assert task_folder("small_task", [package.parent]) == package


def test_a_key_that_occurs_twice_is_refused(package: Path) -> None:
    with (package / "task.yaml").open("a") as file:
        file.write("title: another\n")
    assert "line 46, column 1: key 'title' occurs twice" in check_task(package)[0]


@pytest.mark.parametrize("content", [b"", b"- a\n", b"a: [", b"\xff", b"!!python/object:os.system {}\n"])
def test_a_task_file_that_is_no_document_is_refused(package: Path, content: bytes) -> None:
    (package / "task.yaml").write_bytes(content)
    assert len(check_task(package)) == 1


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("task.yaml", "task.yaml: does not exist"),
        ("description.md", "description.md: does not exist"),
        ("evaluator/evaluate.py", "evaluator/: holds 0 files"),
        ("initial/program.py", "initial/: holds 0 files"),
    ],
)
def test_a_missing_file_is_named(package: Path, path: str, complaint: str) -> None:
    (package / path).unlink()
    assert complaint in check_task(package)[0]


def test_an_evaluator_without_its_functions_is_refused(package: Path) -> None:
    (package / "evaluator" / "evaluate.py").write_text("def evaluate(program, data, split): ...\n")
    assert check_task(package) == [
        "evaluator/evaluate.py: defines no function 'generate' at its top level; add it",
    ]
    (package / "evaluator" / "evaluate.py").write_text("def (:\n")
    assert "evaluator/evaluate.py, line 1: is not Python" in check_task(package)[0]


def test_an_empty_description_is_refused(package: Path) -> None:
    (package / "description.md").write_text(" \n")
    assert "description.md: is empty" in check_task(package)[0]


@pytest.mark.parametrize("path", ["description.md", "initial", "evaluator/more.py"])
def test_a_symbolic_link_is_refused_even_within_the_package(package: Path, tmp_path: Path, path: str) -> None:
    place = package / path
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    place.symlink_to(outside)
    assert any(f"is a symbolic link to {str(outside)!r}" in problem for problem in check_task(package))


def test_a_file_name_that_no_container_takes_is_refused(package: Path) -> None:
    (package / "initial" / "two words.py").write_text("")
    assert "initial/: file path 'two words.py' is not allowed" in check_task(package)[0]


@pytest.mark.parametrize("name", ["frames.py", "session/__init__.py"])
def test_a_module_that_the_runner_would_shadow_is_refused(package: Path, name: str) -> None:
    file = package / "evaluator" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("")
    assert check_task(package) == [
        f"evaluator/{name}: has the name of a module of ours, which would be imported; rename it"
    ]


def test_every_module_of_the_evaluators_runner_is_a_taken_name() -> None:
    images = TASKS.parent / "sandbox_images"
    modules = {file.stem for role in ("base", "evaluator") for file in (images / role / "runner").glob("*.py")}
    assert modules - {"__main__"} <= TAKEN_MODULES


def test_a_message_id_may_be_hyphenated(package: Path) -> None:
    assert edited(package, lambda d: d["messages"].update({"too-slow": "the program is too slow"})) == []


def test_compiled_leftovers_are_no_part_of_a_package(package: Path) -> None:
    (package / "evaluator" / "__pycache__").mkdir()
    (package / "evaluator" / "__pycache__" / "evaluate.cpython-311.pyc").write_bytes(b"\0")
    assert set(load_task(package).evaluator) == {"evaluate.py"}


NUMBERS = sorted(Limits.model_fields)


@given(st.dictionaries(st.sampled_from(NUMBERS), st.integers(1, 1 << 20), max_size=6))
def test_a_task_can_only_tighten_what_the_policy_grants(wanted: dict[str, float]) -> None:
    document = yaml.safe_load((TASKS / "online_bin_packing" / "task.yaml").read_text())
    document["limits"] = {"candidate": wanted}
    try:
        spec = TaskSpec.model_validate(document)
    except ValidationError:
        return  # out of the range that any policy may grant
    granted = Limits()
    limits = spec.tightened(granted, Purpose.CANDIDATE)
    for name in NUMBERS:
        allowed = getattr(granted, name)
        assert getattr(limits, name) == min(allowed, wanted.get(name, allowed))
    assert spec.tightened(granted, Purpose.EVALUATOR) == granted
