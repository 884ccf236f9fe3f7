"""docs/task-authoring.md names every key of a task.yaml, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from orchestrator.evaluation.new_task import new_task
from orchestrator.evaluation.task_code import TAKEN_MODULES
from orchestrator.evaluation.task_spec import TaskSpec
from orchestrator.evaluation.tasks import check_task

PAGE = (Path(__file__).parents[2] / "docs" / "task-authoring.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def first_cells(text: str) -> set[str]:
    """What stands in backticks in the first column of the tables."""
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`([a-z_]+)`", cell)}


def test_the_table_has_every_key_of_a_task_file_and_no_other() -> None:
    assert first_cells(section("`task.yaml`")) == set(TaskSpec.model_fields)


def test_every_key_of_an_inner_part_is_named() -> None:
    schema: dict[str, Any] = TaskSpec.model_json_schema()
    named = set(re.findall(r"`([a-z_]+)(?::[^`]*)?`", section("`task.yaml`") + section("Splits")))
    named |= set(re.findall(r"(?:^|[{ ])([a-z_]+):", section("Signatures"), re.MULTILINE))
    named |= set(re.findall(r"`([a-z_]+)", section("Signatures")))
    keys = {key for part, inner in schema["$defs"].items() for key in inner.get("properties", ()) if part != "Purpose"}
    assert keys - named == set()
    assert set(schema["$defs"]["Purpose"]["enum"]) & {"candidate", "analysis", "evaluator"} <= named


def test_the_splits_of_the_page_are_those_that_a_task_can_have(tmp_path: Path) -> None:
    package = new_task(tmp_path, "small_task")
    example = re.search(r"```yaml\nsplits:\n(.*?)```", section("Splits"), re.DOTALL)
    assert example is not None
    text = (package / "task.yaml").read_text()
    old = re.search(r"splits:\n(?:  .*\n)+", text)
    assert old is not None
    (package / "task.yaml").write_text(text.replace(old[0], f"splits:\n{example[1]}"))
    assert check_task(package) == []


def test_the_page_names_the_modules_that_are_taken() -> None:
    listed = re.search(r"the names ((?:`\w+`[,\s and]*)+)are taken", PAGE)
    assert listed is not None
    assert set(re.findall(r"`(\w+)`", listed[1])) == TAKEN_MODULES
