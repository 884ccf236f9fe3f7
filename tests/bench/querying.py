"""What a query costs that runs in a process of its own, in a sandbox, in a batch."""

from __future__ import annotations

import sqlite3
import statistics
import time
from contextlib import closing
from pathlib import Path

from orchestrator.domain.frames import Frame
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import MountRole, Purpose
from orchestrator.errors import SandboxError
from orchestrator.ports import Session, SessionRequest
from tests.bench.figures import Figure
from tests.bench.workbench import Workbench

AT_MOST_MS = 5.0
BATCH = 100
_ROWS = 5000
_QUERIES = (
    b"SELECT count(*) FROM person WHERE age > 40",
    b"SELECT city, avg(age) FROM person GROUP BY city ORDER BY 2 DESC LIMIT 3",
    b"SELECT name FROM person WHERE id = 77",
    b"SELECT p.name FROM person p JOIN person q ON q.id = p.id + 1 WHERE q.city = 'city 3' LIMIT 20",
)
_LIMITS = {
    "query_seconds": 30.0,
    "max_rows": 100_000,
    "max_bytes": 16 << 20,
    "heap_bytes": 128 << 20,
    "length_bytes": None,
    "address_bytes": 512 << 20,
}


def query_in_a_batch(bench: Workbench, folder: Path, batches: int) -> Figure:
    """Milliseconds for one of a hundred small queries that are sent together, from the first byte to the last result.

    Args:
        bench: Where they run.
        folder: Holds the database while it is made.
        batches: How many are timed, after one that is not.

    Raises:
        SandboxError: A query failed, or the sandbox.
    """
    volume = bench.sandbox.import_volume({"database.sqlite": _database(folder / "bench.sqlite")}, run_id=bench.run_id)
    request = SessionRequest(
        purpose=Purpose.SQL, run_id=bench.run_id, attempt_id="bench", mounts={MountRole.DATABASE: volume}
    )
    with bench.sandbox.session(request) as session:
        session.send(Frame({"type": "open", "readable": None, "limits": _LIMITS}))
        _expect(session, "opened")
        _batch_ms(session)
        taken = [_batch_ms(session) for _ in range(batches)]
        cpu_seconds = session.finish(Ending.OK).cpu_seconds
    cost = (
        "" if cpu_seconds is None else f", {1000 * cpu_seconds / (batches + 1) / BATCH:.2f} ms of processor time each"
    )
    return Figure(
        what=f"SQL query through the sandbox, in a batch of {BATCH}, a process for each",
        value=statistics.median(taken),
        unit="ms",
        at_most=AT_MOST_MS,
        detail=f"median of {batches} batches ({min(taken):.2f} to {max(taken):.2f} ms a query){cost}",
    )


def _batch_ms(session: Session) -> float:
    began = time.perf_counter()
    for number in range(BATCH):
        session.send(Frame({"type": "query", "id": number, "reverse": False}, _QUERIES[number % len(_QUERIES)]))
    for number in range(BATCH):
        result = _expect(session, "result").head
        if (result["id"], result["status"]) != (number, "ok"):
            msg = f"query {number} of a batch ended as {dict(result)!r}"
            raise SandboxError(msg)
    return (time.perf_counter() - began) * 1000 / BATCH


def _expect(session: Session, kind: str) -> Frame:
    frame = session.receive()
    if frame is None or frame.type != kind:
        msg = f"{'nothing' if frame is None else dict(frame.head)!r} came where a {kind!r} frame is due"
        raise SandboxError(msg)
    return frame


def _database(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, age INT, city TEXT)")
        people = [(n, f"name {n}", n % 90, f"city {n % 20}") for n in range(_ROWS)]
        connection.executemany("INSERT INTO person VALUES (?, ?, ?, ?)", people)
        connection.commit()
    return path.read_bytes()
