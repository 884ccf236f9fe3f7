"""A child of the runner: opens the database, waits for one job, does it, answers and ends."""

from __future__ import annotations

import gc
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import describing
import execution
import syscalls
from channel import Channel
from confinement import confine
from connection import Connection
from frames import Frame
from limits import MIN_LENGTH_BYTES, Limits, Readable


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What all children of one runner have in common."""

    uri: str
    """Of the database; see `connection.uri_of`."""
    limits: Limits
    length_bytes: int
    """Of one text, blob or row."""
    readable: Readable | None
    """None: everything."""


def run(task: Task, reading: int, writing: int) -> NoReturn:
    """Do one job and end; nothing of this is undone, and nothing comes back.

    Args:
        task: The runner's.
        reading: Descriptor that the job's frame is read from.
        writing: Descriptor that the answer's frame is written to.
    """
    try:
        gc.disable()  # it would touch pages that are shared, for garbage that ends with this process
        confine((reading, writing), task.limits)
        connection = _open(task)
        syscalls.forbid_the_rest()
        channel = Channel(reading, writing)
        channel.send(*_answer(channel.receive(), connection, task))
    finally:
        os._exit(0)


def _open(task: Task) -> Connection | execution.Answer:
    """The connection, or the answer to whatever is asked of a database that cannot be opened."""
    try:
        return Connection(task.uri, task.limits, task.length_bytes)
    except MemoryError:
        return execution.failed("memory", "the database's schema does not fit the memory of one query")
    except (sqlite3.Error, ValueError) as error:
        return execution.failed("error", str(error))


def _answer(job: Frame, connection: Connection | execution.Answer, task: Task) -> execution.Answer:
    jobs: dict[str, Callable[[Connection], execution.Answer]] = {
        "query": lambda it: execution.execute(
            it, job.body, task.limits, task.readable, reverse=bool(job.head["reverse"])
        ),
        "describe": lambda it: describing.describe(
            it, task.limits, task.readable, examples=job.head["examples"], values=job.head["values"]
        ),
        "measure": lambda it: _measure(it, task.limits),
    }
    if not isinstance(connection, Connection):
        head, body = connection
    else:
        head, body = jobs[job.type](connection)
    return {"type": "answer", **head}, body


def _measure(connection: Connection, limits: Limits) -> execution.Answer:
    """The longest record, in bytes: no text or blob in it is longer, and sorting needs it whole."""
    connection.stop_after(limits.query_seconds)
    try:
        ((longest,),) = connection.raw.execute("SELECT max(mx_payload) FROM dbstat").fetchall()
    except (sqlite3.Error, MemoryError) as error:
        return execution.failed("error", str(error))
    head, body = execution.failed("ok", "")
    return {**head, "longest": max(MIN_LENGTH_BYTES, longest or 0)}, body
