"""docs/robophd.md has every setting with its default, and its example is one."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from orchestrator.bootstrap.robophd.config_file import EvolveFile
from orchestrator.methods.robophd.settings import Settings, Strategy
from orchestrator.search.tournament import RoundKind

PAGE = (Path(__file__).parents[3] / "docs" / "robophd.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def rows(text: str) -> dict[str, str]:
    """First to second cell of the tables whose first cell is in backticks."""
    lines = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
    return {cells[1].strip().strip("`"): cells[2].strip() for cells in lines}


def flat(model: BaseModel, prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name in type(model).model_fields:
        value = getattr(model, name)
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, BaseModel) else {f"{prefix}{name}": shown(value)}
    return found


def shown(value: Any) -> str:
    match value:
        case None:
            return "null"
        case Enum():
            return str(value.value)
        case tuple():
            return ", ".join(map(shown, value)) or "none"
        case dict():
            return ", ".join(f"{shown(name)}: {shown(one)}" for name, one in value.items())
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def test_the_table_has_every_setting_with_its_default_and_no_other() -> None:
    assert rows(section("Settings")) == flat(Settings())


def test_every_strategy_and_every_kind_of_round_is_explained() -> None:
    named = rows(section("How a run goes"))
    assert set(named) == {*(kind.value for kind in RoundKind), *(strategy.value for strategy in Strategy)}


def test_the_example_of_a_configuration_file_is_one() -> None:
    example = re.search(r"```yaml\n(.*?)```", section("Configuration file"), re.DOTALL)
    assert example is not None
    file = EvolveFile.model_validate(yaml.safe_load(example[1]))
    settings = Settings.model_validate({**file.settings, "papers": ("text",)})
    assert settings.iterations == 12
    assert set(yaml.safe_load(example[1])) <= set(EvolveFile.model_fields)
