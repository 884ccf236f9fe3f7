"""Packages' analysis tools, each run in fresh containers that see nothing but the tool and one database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.domain.agent_packages import STDOUT, AgentPackage
from orchestrator.domain.frames import Frame, pack_blobs
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.policies import Limits, MountRole, Purpose
from orchestrator.domain.tool_runs import ToolFailure, ToolFinding, ToolObservation, ToolRun
from orchestrator.errors import PolicyError, SandboxError
from orchestrator.evaluation.database_files import NAME
from orchestrator.evaluation.requests import open_session
from orchestrator.evaluation.tool_claims import Done, Screened, parse_done, parse_observation, parse_screened
from orchestrator.ports import Database, Sandbox, Session, SessionRequest

OUTPUT_BYTES = 4 << 20
"""Of an analysis, at most."""
OBSERVED_BYTES = 1 << 20
DETAIL_CHARACTERS = 2_000
SHOWN_FINDINGS = 5
EXCERPT_CHARACTERS = 60
_OUR_EXITS = frozenset({74, 76})
"""With which a runner ends whose disk failed it, or which did not understand us."""
_FAILURES = {
    Ending.ERROR: ToolFailure.ERROR,
    Ending.NO_RESULT: ToolFailure.ERROR,  # it ended its container, or
    Ending.INVALID_RESULT: ToolFailure.ERROR,  # wrote to the runner's channel
    Ending.TIMEOUT: ToolFailure.TIMEOUT,
    Ending.MEMORY: ToolFailure.MEMORY,
    Ending.PROCESSES: ToolFailure.PROCESSES,
    Ending.OUTPUT_LIMIT: ToolFailure.OUTPUT_LIMIT,
    Ending.DISK: ToolFailure.DISK,
    Ending.KILLED: ToolFailure.KILLED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One container; `output` is set unless `failure` is."""

    failure: ToolFailure | None
    detail: str
    output: bytes
    screened: Screened | None
    """None: it ended before it could say."""
    outcome: Outcome
    observation: ToolObservation | None = None


class SandboxDatabaseTools:
    """`ports.DatabaseTools` on real containers, for one run. Thread-safe."""

    def __init__(self, sandbox: Sandbox, *, run_id: str) -> None:
        """Nothing runs before the first analysis.

        Args:
            sandbox: Its policy holds the limits.
            run_id: Of the containers.
        """
        self._sandbox = sandbox
        self._run_id = run_id

    def analyse(self, package: AgentPackage, database: Database, *, attempt_id: str, observe: bool = False) -> ToolRun:
        """As `ports.DatabaseTools`; the second run is left out where the first one has failed."""
        first = self._run(package, database, attempt_id, observe=observe)
        screened = first.screened
        findings = screened.findings if screened is not None else ()
        if screened is not None and findings and not observe:
            detail = _refusal(findings, screened.omitted)
            return ToolRun(text=None, failure=ToolFailure.REFUSED, detail=detail, findings=findings)
        runs = [first]
        if first.failure is None:
            runs.append(self._run(package, database, attempt_id, observe=observe))
        failure, detail = _judged(runs)
        return ToolRun(
            text=None if failure else first.output.decode(),
            failure=failure,
            detail=detail,
            findings=findings,
            outcomes=tuple(run.outcome for run in runs),
            observation=first.observation,
        )

    def _run(self, package: AgentPackage, database: Database, attempt_id: str, *, observe: bool) -> _Run:
        limits = self._limits()
        request = SessionRequest(
            purpose=Purpose.TOOL,
            run_id=self._run_id,
            attempt_id=attempt_id,
            mounts={MountRole.DATABASE: database.digest},
        )
        with open_session(self._sandbox, request) as session:
            start = _start(package, limits)
            session.send(start)
            opening = session.receive()
            if opening is None:
                return _unscreened(session.finish(Ending.NO_RESULT))
            screened = parse_screened(opening, package.tool_files)
            _check_volume(screened, database)
            if screened.findings and not observe:
                return _ended(session.finish(Ending.OK), None, package, start, screened)
            return _conclude(session, package, start, screened, observe=observe)

    def _limits(self) -> Limits:
        grant = self._sandbox.policy.purposes.get(Purpose.TOOL)
        if grant is None:
            name = self._sandbox.policy.name
            msg = f"policy {name!r} grants nothing to purpose 'tool'; add it under 'purposes'"
            raise PolicyError(msg)
        return grant.limits


def _judged(runs: Sequence[_Run]) -> tuple[ToolFailure | None, str]:
    """(failure, detail) of a tool that was run once and failed, or twice; no failure: it gave one text."""
    first, second = runs[0], runs[-1]
    if first.failure is not None:
        return first.failure, first.detail
    if second.failure is not None:
        return second.failure, f"in its second run, after a first one that went well: {second.detail}"
    if second.output != first.output:
        return ToolFailure.NOT_DETERMINISTIC, _difference(first.output.decode(), second.output.decode())
    return None, ""


def _start(package: AgentPackage, limits: Limits) -> Frame:
    """What a container is told to do; what it may hand back fits into one frame of it."""
    table, body = pack_blobs(package.tool_files)
    head = {
        "type": "start",
        "blobs": table,
        "command": list(package.manifest.command),
        "output": package.manifest.output,
        "output_bytes": min(OUTPUT_BYTES, limits.frame_body_bytes // 2),
        "print_bytes": limits.output_kill_bytes,
        "observed_bytes": min(OBSERVED_BYTES, limits.frame_body_bytes // 4),
    }
    return Frame(head, body)


def _check_volume(screened: Screened, database: Database) -> None:
    """See that what is mounted is what the database is.

    Raises:
        SandboxError: It is not.
    """
    manifest = json.dumps({NAME: screened.sha256}, sort_keys=True, separators=(",", ":")).encode()
    if "sha256:" + hashlib.sha256(manifest).hexdigest() != database.digest:
        msg = f"the volume {database.digest} does not hold the database {database.name!r}; import it again"
        raise SandboxError(msg)


def _conclude(session: Session, package: AgentPackage, start: Frame, screened: Screened, *, observe: bool) -> _Run:
    """Let the tool run, take the container's claim, and its end."""
    session.send(Frame({"type": "run", "observe": observe}))
    frame = session.receive()
    done = None if frame is None else parse_done(frame)
    unread = Ending.NO_RESULT if frame is None else Ending.INVALID_RESULT
    claim = unread if done is None else done.ending
    run = _ended(session.finish(claim), done, package, start, screened)
    return replace(run, observation=parse_observation(b"" if done is None else done.observed)) if observe else run


def _ended(outcome: Outcome, done: Done | None, package: AgentPackage, start: Frame, screened: Screened) -> _Run:
    """How a run has gone, by its container's end first, and then by what it left."""
    failure, detail, output = None, "", b""
    if outcome.ending is not Ending.OK:
        failure, detail = _FAILURES[outcome.ending], _failure_detail(outcome, done, start)
    elif done is not None:
        failure, detail = _flaw(done, package, start)
        output = b"" if failure else done.output
    return _Run(failure=failure, detail=detail, output=output, screened=screened, outcome=outcome)


def _unscreened(outcome: Outcome) -> _Run:
    """A container that ended while it read the tool, which then was too much for it.

    Raises:
        SandboxError: It ended for a reason of ours.
    """
    if outcome.ending is Ending.OK or outcome.exit_code in _OUR_EXITS:
        said = outcome.output[-300:].decode("utf-8", "replace")
        msg = f"a container for tools ended before it ran anything, {outcome.ending.value} ({outcome.detail}): {said!r}"
        raise SandboxError(msg)
    detail = f"while the screen read its files: {outcome.detail}"
    return _Run(failure=_FAILURES[outcome.ending], detail=detail, output=b"", screened=None, outcome=outcome)


def _failure_detail(outcome: Outcome, done: Done | None, start: Frame) -> str:
    if done is None or outcome.ending is not done.ending:
        return outcome.detail
    match outcome.ending:
        case Ending.ERROR:
            return _said(done) or f"it ended with exit code {done.exit_code} and said nothing"
        case Ending.KILLED:
            return f"it was ended by signal {done.signal}"
        case Ending.DISK:
            return f"no space was left for what it wrote; it ended with exit code {done.exit_code}"
    most = start.head["print_bytes" if done.flooded else "output_bytes"]
    return f"it printed more than {most} bytes" if done.flooded else f"its output has more than {most} bytes"


def _flaw(done: Done, package: AgentPackage, start: Frame) -> tuple[ToolFailure | None, str]:
    """(failure, detail) of the output of a run that ended well; no failure: it is a text."""
    name = "stdout" if package.manifest.output == STDOUT else f"its output {package.manifest.output!r}"
    said = f"; it said: {text}" if (text := _said(done)) else ""
    if len(done.output) > start.head["output_bytes"]:
        return ToolFailure.OUTPUT_LIMIT, f"{name} has more than {start.head['output_bytes']} bytes"
    if done.status != "ok":
        return ToolFailure.NO_OUTPUT, f"{name} is {'missing' if done.status == 'missing' else 'no plain file'}{said}"
    try:
        text = done.output.decode()
    except UnicodeDecodeError as error:
        return ToolFailure.NOT_TEXT, f"byte {error.start} of {name} is no UTF-8"
    if "\0" in text:
        return ToolFailure.NOT_TEXT, f"{name} holds a NUL character at byte {done.output.index(0)}"
    return (None, "") if text.strip() else (ToolFailure.NO_OUTPUT, f"{name} is empty{said}")


def _said(done: Done) -> str:
    """The end of what the tool said on stderr."""
    text = done.said.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}").strip()
    return text if len(text) <= DETAIL_CHARACTERS else f"[...]{text[-DETAIL_CHARACTERS:]}"


def _refusal(findings: tuple[ToolFinding, ...], omitted: int) -> str:
    shown = [f"{one.file}, line {one.line}: {one.message}" for one in findings[:SHOWN_FINDINGS]]
    more = len(findings) - len(shown) + omitted
    return "\n".join([*shown, *([f"and {more} more"] if more else [])])


def _difference(first: str, second: str) -> str:
    """Where two outputs part, with a little of both."""
    at = next((place for place, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), None)
    at = min(len(first), len(second)) if at is None else at
    begin = max(0, at - EXCERPT_CHARACTERS // 2)
    shown = [text[begin : begin + EXCERPT_CHARACTERS] for text in (first, second)]
    return f"two runs on the same database differ from character {at} on: {shown[0]!r} and {shown[1]!r}"
