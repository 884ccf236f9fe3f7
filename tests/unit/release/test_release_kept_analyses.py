"""Analyses that are kept for later questions: under everything they depend on, and never a failure."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator.bootstrap.release.kept_analyses import FOLDER, KeptAnalyses
from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.tool_runs import ToolFailure, ToolObservation, ToolRun
from orchestrator.errors import PrerequisiteError, SandboxError
from orchestrator.ports import Database
from tests.answering_lab import PeopleDatabase, ScriptedTools, package, tool_run

ROOT = Path(__file__).parents[3]
IMAGE = "sha256:" + "a" * 64
TEXT = "Table p holds people, \N{SNOWMAN} and \u202e."


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir(mode=0o700)
    return made


def ask(
    home: Path,
    tools: ScriptedTools,
    *,
    image: str = IMAGE,
    asked: AgentPackage | None = None,
    database: Database | None = None,
) -> tuple[str | None, bool]:
    """(text, whether it was kept) for a new question."""
    kept = KeptAnalyses(tools, home, image)
    run = kept.analyse(asked or package(), database or PeopleDatabase(), attempt_id="tool/1")
    return run.text, kept.was_kept


def files(home: Path) -> list[Path]:
    return sorted((home / FOLDER).iterdir())


def test_a_tool_runs_once_for_all_questions_of_a_database(home: Path) -> None:
    tools = ScriptedTools(tool_run(TEXT), tool_run("another text"))
    assert ask(home, tools) == (TEXT, False)
    assert ask(home, tools) == (TEXT, True)
    assert ask(home, tools) == (TEXT, True)
    assert len(tools.asked) == len(files(home)) == 1


def test_another_package_database_or_image_is_another_analysis(home: Path) -> None:
    other = PeopleDatabase()
    other.digest = "sha256:" + "2" * 64
    tools = ScriptedTools(*(tool_run(str(number)) for number in range(5)))
    assert ask(home, tools) == ("0", False)
    assert ask(home, tools, asked=package("Other words.")) == ("1", False)
    assert ask(home, tools, asked=package(tool="print(2)\n")) == ("2", False)
    assert ask(home, tools, database=other) == ("3", False)
    assert ask(home, tools, image="sha256:" + "b" * 64) == ("4", False)
    assert ask(home, tools) == ("0", True)
    assert ask(home, tools, database=other) == ("3", True)


def test_what_makes_no_difference_to_the_tool_makes_none_here(home: Path) -> None:
    renamed = PeopleDatabase()
    renamed.name = "elsewhere/people"
    thought = AgentPackage.load({**package().tree, "reasoning.md": b"why"})
    tools = ScriptedTools(tool_run(TEXT))
    ask(home, tools)
    assert ask(home, tools, database=renamed) == (TEXT, True)
    assert ask(home, tools, asked=thought) == (TEXT, True)


def test_a_failure_is_not_kept(home: Path) -> None:
    tools = ScriptedTools(tool_run(None, ToolFailure.TIMEOUT), tool_run(TEXT))
    assert ask(home, tools) == (None, False)
    assert files(home) == []
    assert ask(home, tools) == (TEXT, False)
    assert ask(home, tools) == (TEXT, True)


def test_a_failure_of_the_sandbox_is_not_kept_either(home: Path) -> None:
    class Broken(ScriptedTools):
        def analyse(self, *_: object, **__: object) -> ToolRun:
            msg = "the engine is gone"
            raise SandboxError(msg)

    with pytest.raises(SandboxError):
        ask(home, Broken())
    assert files(home) == []


DAMAGES = {
    "emptied": b"",
    "no JSON": b"{",
    "other JSON": b"[1]",
    "another format": b'{"format": 2, "sha256": "", "text": "lies"}',
    "a field more": b'{"format": 1, "sha256": "", "text": "lies", "more": 1}',
    "no UTF-8": b'{"format": 1, "sha256": "", "text": "\xff"}',
    "text that was changed": None,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_as_if_it_were_not_there(home: Path, damage: str) -> None:
    tools = ScriptedTools(tool_run(TEXT))
    ask(home, tools)
    (path,) = files(home)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"people", b"beetle") if DAMAGES[damage] is None else DAMAGES[damage])
    assert path.read_bytes() != whole
    assert ask(home, tools) == (TEXT, False)
    assert files(home) == [path]
    assert path.read_bytes() == whole
    assert ask(home, tools) == (TEXT, True)


def test_a_file_that_others_may_read_or_a_link_is_replaced(home: Path, tmp_path: Path) -> None:
    tools = ScriptedTools(tool_run(TEXT))
    ask(home, tools)
    (path,) = files(home)
    path.chmod(0o644)
    assert ask(home, tools) == (TEXT, False)
    assert path.stat().st_mode & 0o777 == 0o600
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    assert ask(home, tools) == (TEXT, False)
    assert not path.is_symlink()
    path.unlink()
    path.mkdir()
    with pytest.raises(PrerequisiteError, match=r"cannot remove .*\.json', which holds no analysis: .*; move it away"):
        ask(home, tools)


def test_a_folder_that_others_may_enter_is_refused(home: Path) -> None:
    (home / FOLDER).mkdir(mode=0o755)
    with pytest.raises(PrerequisiteError, match=r"analyses' has mode 0755.*chmod"):
        ask(home, ScriptedTools())


def test_a_tool_that_is_observed_runs_and_nothing_is_kept_of_it(home: Path) -> None:
    class Observed:
        def __init__(self) -> None:
            self.observed: list[bool] = []

        def analyse(self, *_: object, observe: bool = False, **__: object) -> ToolRun:
            self.observed.append(observe)
            return ToolRun(text=TEXT, failure=None, observation=ToolObservation())

    ask(home, ScriptedTools(tool_run("kept")))
    before = files(home)
    inner = Observed()
    run = KeptAnalyses(inner, home, IMAGE).analyse(package(), PeopleDatabase(), attempt_id="a", observe=True)
    assert (run.text, run.observation, inner.observed) == (TEXT, ToolObservation(), [True])
    assert KeptAnalyses(inner, home, IMAGE).analyse(package(), PeopleDatabase(), attempt_id="a").text == "kept"
    assert files(home) == before


def test_many_questions_at_once_leave_one_whole_analysis(home: Path) -> None:
    barrier = threading.Barrier(8, timeout=30)

    class Slow(ScriptedTools):
        def analyse(self, *_: object, **__: object) -> ToolRun:
            barrier.wait()  # all have seen that there is none
            return tool_run(TEXT * 1000)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: ask(home, Slow()), range(8)))
    assert found == [(TEXT * 1000, False)] * 8
    assert len(files(home)) == 1
    assert ask(home, ScriptedTools(tool_run("other"))) == (TEXT * 1000, True)


def test_an_analysis_is_there_for_other_processes(home: Path) -> None:
    ask(home, ScriptedTools(tool_run(TEXT)))
    script = (
        "import sys; from pathlib import Path; from tests.answering_lab import PeopleDatabase, package;"
        "from orchestrator.bootstrap.release.kept_analyses import KeptAnalyses;"
        f"print(KeptAnalyses(None, Path(sys.argv[1]), {IMAGE!r}).analyse(package(), PeopleDatabase(), "
        "attempt_id='a').text.encode('unicode_escape').decode())"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, str(home)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert ended.stdout.strip() == TEXT.encode("unicode_escape").decode()


def test_what_is_kept_is_readable_by_its_owner_alone(home: Path) -> None:
    ask(home, ScriptedTools(tool_run(TEXT)))
    (path,) = files(home)
    assert path.stat().st_mode & 0o777 == 0o600
    assert (home / FOLDER).stat().st_mode & 0o777 == 0o700
    assert json.loads(path.read_text())["text"] == TEXT
