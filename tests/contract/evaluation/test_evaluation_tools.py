"""`SandboxDatabaseTools`: what frames of a `tool` container come to, well formed or not."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import pytest
from scripted_sandbox import Answer, ScriptedSandbox, frame

from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.frames import Frame, pack_blobs
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Grant, Limits, MountRole, Policy, Purpose
from orchestrator.domain.tool_runs import ToolFailure, ToolFinding, ToolObservation, ToolRun
from orchestrator.errors import PolicyError, ProtocolError, SandboxError
from orchestrator.evaluation.database_tools import SandboxDatabaseTools

SHA256 = hashlib.sha256(b"a database").hexdigest()
DIGEST = "sha256:" + hashlib.sha256(f'{{"database.sqlite":"{SHA256}"}}'.encode()).hexdigest()
LIMITS = Limits(frame_body_bytes=4000, output_kill_bytes=5000)
OUTPUT = "tool_output/analysis.md"
FINDING = ["tools/analyze.py", 3, "imports 'socket'"]


@dataclass(frozen=True)
class Named:
    """As much of a database as its name and its volume."""

    name: str = "people"
    digest: str = DIGEST


@pytest.fixture
def box() -> ScriptedSandbox:
    made = ScriptedSandbox()
    grant = Grant(image="tool", mounts=frozenset({MountRole.DATABASE}), limits=LIMITS)
    made.policy = Policy(version=1, name="scripted", purposes={Purpose.TOOL: grant})
    return made


def package(output: str = OUTPUT) -> AgentPackage:
    manifest = {"version": 1, "command": ["tools/analyze.py", "--rows", "5"], "output": output}
    return AgentPackage.load({
        "agent.json": json.dumps(manifest).encode(),
        "eval_instructions.md": b"Answer.",
        "reasoning.md": b"secret",
        "tools/analyze.py": b"import helper\n",
        "tools/helper.py": b"",
    })  # fmt: skip


def screened(*findings: object, **changes: object) -> Frame:
    return frame("screened", **{"database": SHA256, "findings": list(findings), "omitted": 0, **changes})


def done(text: bytes = b"", /, *, said: bytes = b"", observed: bytes = b"", **changes: object) -> Frame:
    table, body = pack_blobs({"output": text, "said": said, "observed": observed})
    head = {"exit_code": 0, "signal": None, "disk_full": False, "flooded": False, "output": "ok", "blobs": table}
    return frame("done", body, **{**head, **changes})


def play(box: ScriptedSandbox, *answers: Answer, sees: Ending | None = None) -> None:
    """One container: its answer to `start`, and then its answers to `run`."""
    said = {"start": answers[:1], "run": answers[1:]}
    box.play(Purpose.TOOL, lambda received: said[received.type], sees=sees)


def analyse(box: ScriptedSandbox, *, observe: bool = False, output: str = OUTPUT) -> ToolRun:
    tools = SandboxDatabaseTools(box, run_id="run")
    return tools.analyse(package(output), Named(), attempt_id="tool/1", observe=observe)


def claims(box: ScriptedSandbox) -> list[Ending]:
    return [claim for one in box.opened for claim in one.claims]


def test_a_tool_that_gives_the_same_text_twice_has_analysed(box: ScriptedSandbox) -> None:
    for _ in range(2):
        play(box, screened(), done("T\u00e4bles\n".encode()))
    result = analyse(box)
    assert (result.text, result.failure, result.detail, result.findings) == ("T\u00e4bles\n", None, "", ())
    assert (len(result.outcomes), result.observation) == (2, None)
    assert claims(box) == [Ending.OK, Ending.OK]


def test_each_container_gets_the_tool_the_database_and_nothing_else(box: ScriptedSandbox) -> None:
    for _ in range(2):
        play(box, screened(), done(b"text"))
    analyse(box)
    for one in box.opened:
        assert one.request is not None
        assert (one.request.purpose, one.request.run_id, one.request.attempt_id) == (Purpose.TOOL, "run", "tool/1")
        assert one.request.mounts == {MountRole.DATABASE: DIGEST}
        start, run = one.received
        assert run == Frame({"type": "run", "observe": False})
        assert start.body == b"import helper\n"
        assert start.head == {
            "type": "start",
            "blobs": [["tools/analyze.py", 14], ["tools/helper.py", 0]],
            "command": ["tools/analyze.py", "--rows", "5"],
            "output": OUTPUT,
            "output_bytes": 2000,
            "print_bytes": 5000,
            "observed_bytes": 1000,
        }


def test_what_the_screen_refuses_is_not_run(box: ScriptedSandbox) -> None:
    play(box, screened(FINDING, FINDING, omitted=7))
    result = analyse(box)
    found = ToolFinding(file="tools/analyze.py", line=3, message="imports 'socket'")
    assert result == ToolRun(
        text=None,
        failure=ToolFailure.REFUSED,
        detail="tools/analyze.py, line 3: imports 'socket'\n" * 2 + "and 7 more",
        findings=(found, found),
    )
    assert [received.type for one in box.opened for received in one.received] == ["start"]


def test_what_is_observed_is_run_although_the_screen_refuses_it(box: ScriptedSandbox) -> None:
    told = b'{"type": "import", "text": "socket"}\n'
    play(box, screened(FINDING), done(b"text", observed=told))
    result = analyse(box, observe=True)
    assert (result.text, result.failure, len(result.findings), len(result.outcomes)) == ("text", None, 1, 2)
    assert result.observation == ToolObservation(imports=("socket",))
    assert [one.received[1].head["observe"] for one in box.opened] == [True, True]


@pytest.mark.parametrize(
    ("answer", "failure", "detail"),
    [
        (done(exit_code=1, output="missing", said=b"Traceback\n\0\xff\n"), "error", "Traceback\n\ufffd\ufffd"),
        (done(exit_code=3, output="missing"), "error", "it ended with exit code 3 and said nothing"),
        (done(b"text", exit_code=1, said=b"late"), "error", "late"),
        (done(exit_code=1, said=b"x" * 3000), "error", "[...]" + "x" * 2000),
        (done(exit_code=None, signal=11), "killed", "it was ended by signal 11"),
        (done(exit_code=1, disk_full=True), "disk", "no space was left for what it wrote; it ended with exit code 1"),
        (done(exit_code=None, signal=9, flooded=True), "output-limit", "it printed more than 5000 bytes"),
        (done(output="too-large"), "output-limit", "its output has more than 2000 bytes"),
        (done(b"x" * 2001), "output-limit", f"its output '{OUTPUT}' has more than 2000 bytes"),
        (done(output="missing"), "no-output", f"its output '{OUTPUT}' is missing"),
        (done(output="missing", said=b"oh no"), "no-output", f"its output '{OUTPUT}' is missing; it said: oh no"),
        (done(output="not-a-file"), "no-output", f"its output '{OUTPUT}' is no plain file"),
        (done(b" \n\t"), "no-output", f"its output '{OUTPUT}' is empty"),
        (done(b"ab\xff"), "not-text", f"byte 2 of its output '{OUTPUT}' is no UTF-8"),
        (done(b"\xed\xa0\x80"), "not-text", f"byte 0 of its output '{OUTPUT}' is no UTF-8"),
        (done(b"ab\0"), "not-text", f"its output '{OUTPUT}' holds a NUL character at byte 2"),
    ],
)
def test_how_a_tool_fails_is_a_value_and_it_is_not_run_again(
    box: ScriptedSandbox, answer: Frame, failure: str, detail: str
) -> None:
    play(box, screened(), answer)
    result = analyse(box)
    assert (result.text, result.failure, result.detail) == (None, failure, detail)
    assert len(result.outcomes) == 1


@pytest.mark.parametrize(
    ("ending", "failure"),
    [
        (Ending.TIMEOUT, ToolFailure.TIMEOUT),
        (Ending.MEMORY, ToolFailure.MEMORY),
        (Ending.PROCESSES, ToolFailure.PROCESSES),
        (Ending.OUTPUT_LIMIT, ToolFailure.OUTPUT_LIMIT),
        (Ending.KILLED, ToolFailure.KILLED),
    ],
)
def test_a_limit_that_was_seen_counts_more_than_what_a_container_claims(
    box: ScriptedSandbox, ending: Ending, failure: ToolFailure
) -> None:
    play(box, screened(), done(b"text"), sees=ending)
    result = analyse(box)
    assert (result.text, result.failure, result.detail) == (None, failure, "as the test says")


@pytest.mark.parametrize(
    "answer",
    [
        frame("output", b"text"),
        screened(),
        done(b"text", exit_code="0"),
        done(b"text", exit_code=True),
        done(b"text", exit_code=-1),
        done(b"text", exit_code=256),
        done(b"text", exit_code=None),
        done(b"text", signal=9),
        done(b"text", output="fine"),
        done(b"text", output="missing"),
        done(b"text", output=["ok"]),
        done(b"text", disk_full=0),
        done(b"text", flooded=None),
        done(b"text", blobs=[["output", 4]]),
        done(b"text", blobs=[["output", 5], ["said", 0], ["observed", 0]]),
        done(b"text", blobs=[["output", 4], ["said", 0], ["said", 0]]),
        done(b"text", blobs=[["output", 4], ["said", 0], ["observed", 0], ["more", 0]]),
        done(b"text", blobs=None),
        frame("done"),
    ],
    ids=lambda answer: str(dict(answer.head))[:80],
)
def test_a_claim_that_is_not_understood_is_the_tools_failure(box: ScriptedSandbox, answer: Frame) -> None:
    play(box, screened(), answer)
    result = analyse(box)
    assert (result.text, result.failure) == (None, ToolFailure.ERROR)
    assert claims(box) == [Ending.INVALID_RESULT]


def test_a_container_that_ends_without_a_word_is_the_tools_failure(box: ScriptedSandbox) -> None:
    play(box, screened(), sees=Ending.KILLED)
    assert analyse(box).failure is ToolFailure.KILLED
    assert claims(box) == [Ending.NO_RESULT]


@pytest.mark.parametrize(
    "answer",
    [
        done(b"text"),
        screened(database=None),
        screened(omitted=-1),
        screened(omitted=True),
        screened(findings="none"),
        screened(*[FINDING] * 21),
        screened(["tools/other.py", 1, "x"]),
        screened(["tools/analyze.py", 0, "x"]),
        screened(["tools/analyze.py", True, "x"]),
        screened(["tools/analyze.py", 1, "a\nb"]),
        screened(["tools/analyze.py", 1, "x" * 401]),
        screened(["tools/analyze.py", 1]),
    ],
    ids=lambda answer: str(dict(answer.head))[:80],
)
def test_our_own_runner_must_keep_to_the_protocol_before_the_tool_runs(box: ScriptedSandbox, answer: Frame) -> None:
    play(box, answer)
    with pytest.raises(ProtocolError):
        analyse(box)


def test_a_volume_that_holds_something_else_is_our_failure(box: ScriptedSandbox) -> None:
    play(box, screened(database=hashlib.sha256(b"another").hexdigest()), done(b"text"))
    with pytest.raises(SandboxError, match="does not hold the database 'people'; import it again"):
        analyse(box)


@pytest.mark.parametrize("ending", [Ending.MEMORY, Ending.TIMEOUT, Ending.KILLED])
def test_a_tool_that_is_too_much_to_read_has_failed(box: ScriptedSandbox, ending: Ending) -> None:
    play(box, sees=ending)
    result = analyse(box)
    assert (result.failure, result.findings) == (ToolFailure(ending.value), ())
    assert result.detail == "while the screen read its files: as the test says"


@pytest.mark.parametrize("code", [74, 76])
def test_a_runner_that_cannot_begin_is_our_failure(box: ScriptedSandbox, code: int) -> None:
    box.play(Purpose.TOOL, lambda _: (), sees=Ending.ERROR, exit_code=code)
    with pytest.raises(SandboxError, match=r"before it ran anything, error \(as the test says\): 'printed'"):
        analyse(box)


def test_what_the_engine_cannot_do_is_raised(box: ScriptedSandbox) -> None:
    play(box, screened(), SandboxError("the engine went away"))
    with pytest.raises(SandboxError, match="went away"):
        analyse(box)


def test_a_policy_that_grants_no_tools_says_so(box: ScriptedSandbox) -> None:
    box.policy = Policy(version=1, name="narrow", purposes={Purpose.SQL: Grant(image="sql")})
    with pytest.raises(PolicyError, match="policy 'narrow' grants nothing to purpose 'tool'; add it"):
        analyse(box)


def test_two_runs_that_differ_are_told_apart_with_the_place(box: ScriptedSandbox) -> None:
    play(box, screened(), done(b"a" * 100 + b"1st"))
    play(box, screened(), done(b"a" * 100 + b"2nd"))
    result = analyse(box)
    assert (result.text, result.failure, len(result.outcomes)) == (None, ToolFailure.NOT_DETERMINISTIC, 2)
    around = "a" * 30
    assert result.detail == (
        f"two runs on the same database differ from character 100 on: '{around}1st' and '{around}2nd'"
    )


def test_a_run_that_is_the_beginning_of_the_other_differs_from_it(box: ScriptedSandbox) -> None:
    play(box, screened(), done(b"text"))
    play(box, screened(), done(b"text and more"))
    result = analyse(box)
    assert result.failure is ToolFailure.NOT_DETERMINISTIC
    assert "from character 4 on: 'text' and 'text and more'" in result.detail


def test_a_second_run_that_fails_is_the_tools_failure(box: ScriptedSandbox) -> None:
    play(box, screened(), done(b"text"))
    play(box, screened(), done(exit_code=1, said=b"a coin was tossed"))
    result = analyse(box)
    assert (result.failure, len(result.outcomes)) == (ToolFailure.ERROR, 2)
    assert result.detail == "in its second run, after a first one that went well: a coin was tossed"


def test_stdout_is_named_where_it_is_the_output(box: ScriptedSandbox) -> None:
    play(box, screened(), done(b""))
    assert analyse(box, output="stdout").detail == "stdout is empty"
