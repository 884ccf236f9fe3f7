"""`SandboxAnalyst` and what it keeps of a script's output."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_sandbox import Answer, ScriptedSandbox, frame

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import MountRole, Purpose
from orchestrator.errors import SandboxError
from orchestrator.evaluation.analyst import SandboxAnalyst
from orchestrator.evaluation.excerpt import Excerpt, head_length
from orchestrator.evaluation.tasks import Task
from orchestrator.ports import AnalysisResult

FILES = FileTree({"program.py": b"x = 1\n", "analysis.py": b"import program\n"})
DONE = frame("done", exit_code=0, signal=None, disk_full=False)


def analyse(box: ScriptedSandbox, task: Task, *answers: Answer) -> AnalysisResult:
    box.play(Purpose.ANALYSIS, lambda _: answers)
    return SandboxAnalyst(box, task).analyse(FILES, run_id="run", attempt_id="i0-a0001")


def test_a_script_finds_the_other_files_beside_it(box: ScriptedSandbox, task: Task) -> None:
    result = analyse(box, task, frame("output", b"hello\n"), frame("output", b"again\n"), DONE)
    assert (result.output, result.omitted_bytes, result.outcome.ending) == (b"hello\nagain\n", 0, Ending.OK)
    start = box.opened[0].received[0]
    assert (start.head["script"], start.head["blobs"]) == ("analysis.py", [["analysis.py", 15], ["program.py", 6]])


def test_public_data_are_mounted_where_the_task_has_them(box: ScriptedSandbox, task: Task) -> None:
    analyse(box, replace(task, public={"points.csv": b"1,2\n"}), DONE)
    request = box.opened[0].request
    assert request is not None
    assert box.volumes[request.mounts[MountRole.PUBLIC]] == {"points.csv": b"1,2\n"}
    analyse(box, task, DONE)
    request = box.opened[1].request
    assert request is not None
    assert request.mounts == {}


@pytest.mark.parametrize(
    ("answers", "ending"),
    [
        ((), Ending.NO_RESULT),
        ((frame("done", exit_code=1, signal=None, disk_full=False),), Ending.ERROR),
        ((frame("done", exit_code=1, signal=None, disk_full=True),), Ending.DISK),
        ((frame("done", exit_code=0, signal=None, disk_full=True),), Ending.OK),
        ((frame("done", exit_code=None, signal=9, disk_full=False),), Ending.KILLED),
        ((frame("done"),), Ending.ERROR),
        ((frame("verdict", status="scored", metrics={}),), Ending.INVALID_RESULT),
        ((frame("ready"),), Ending.INVALID_RESULT),
    ],
)
def test_the_end_of_a_script_is_told(
    box: ScriptedSandbox, task: Task, answers: Iterable[Answer], ending: Ending
) -> None:
    result = analyse(box, task, frame("output", b"partial"), *answers)
    assert (result.output, result.outcome.ending) == (b"partial", ending)


def test_what_was_printed_before_a_kill_is_kept(box: ScriptedSandbox, task: Task) -> None:
    box.play(Purpose.ANALYSIS, lambda _: [frame("output", b"partial")], sees=Ending.TIMEOUT)
    result = SandboxAnalyst(box, task).analyse(FILES, run_id="run", attempt_id="i0-a0001")
    assert (result.output, result.outcome.ending) == (b"partial", Ending.TIMEOUT)


def test_long_output_keeps_its_beginning_and_its_end(box: ScriptedSandbox, task: Task) -> None:
    result = analyse(box, task, frame("output", b"a" * 1000), frame("output", b"b" * 1000), DONE)
    assert (result.output, result.omitted_bytes) == (b"a" * 300 + b"b" * 100, 1600)


def test_a_flood_is_ended(box: ScriptedSandbox, task: Task) -> None:
    result = analyse(box, task, *[frame("output", b"a" * 1000)] * 5, DONE)
    assert result.outcome.ending is Ending.OUTPUT_LIMIT
    assert len(result.output) == 400


def test_an_engine_that_fails_is_no_ending(box: ScriptedSandbox, task: Task) -> None:
    with pytest.raises(SandboxError, match="gone"):
        analyse(box, task, SandboxError("gone"))


def test_warm_containers_are_those_that_analyses_use(box: ScriptedSandbox, task: Task) -> None:
    SandboxAnalyst(box, task).prepare(run_id="run", warm=3)
    analyse(box, task, DONE)
    ((warmed, count),) = box.warmed
    used = box.opened[0].request
    assert used is not None
    assert (warmed.purpose, warmed.mounts, warmed.limits, count) == (used.purpose, used.mounts, used.limits, 3)


@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(0, 100))
def test_an_excerpt_is_the_beginning_and_the_end_however_the_pieces_fall(pieces: list[bytes], limit: int) -> None:
    excerpt = Excerpt(limit)
    for piece in pieces:
        excerpt.add(piece)
    whole = b"".join(pieces)
    head = head_length(limit)
    expected = whole if len(whole) <= limit else whole[:head] + whole[len(whole) - (limit - head) :]
    assert excerpt.kept == expected
    assert excerpt.omitted_bytes == len(whole) - len(expected)
