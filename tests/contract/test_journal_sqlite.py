"""What only a file can suffer: crashes, full disks, damage, and more than one process."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.errors import PrerequisiteError, RunStateError
from orchestrator.storage.journal import SqliteJournal

ROOT = Path(__file__).parents[2]

WRITER = """
import sys
from pathlib import Path
from orchestrator.storage.journal import SqliteJournal

with SqliteJournal(Path(sys.argv[1])) as journal:
    start = sum(1 for _ in journal.records("s/"))
    print("begun", flush=True)
    for n in range(start, 100_000):
        digest = journal.put_blob(b"%d" % n * 300)
        print("blob", digest, flush=True)
        journal.put(f"s/{n}", {"n": n, "blob": digest, "text": "x" * (n % 977)})
        print("step", n, flush=True)
"""

HOLDER = """
import sys, time
from pathlib import Path
from orchestrator.storage.journal import SqliteJournal

with SqliteJournal(Path(sys.argv[1])) as journal:
    journal.put("here", {})
    print("ready", flush=True)
    sys.stdin.read()
"""

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from orchestrator.errors import PrerequisiteError
from orchestrator.storage.journal import SqliteJournal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with SqliteJournal(Path(sys.argv[1])) as journal:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    n = 0
    try:
        while n < 1000:
            journal.put(f"s/{n}", {"text": "x" * 10_000})
            n += 1
    except PrerequisiteError as error:
        print(n, error)
    assert sum(1 for _ in journal.records()) == n
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    journal.put("space-again", {})
"""


def python(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


@pytest.fixture
def owner(path: Path) -> Iterator[subprocess.Popen[str]]:
    with python(HOLDER, path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_what_was_acknowledged_survives_kill_9_at_any_moment(path: Path) -> None:
    steps, digests = 0, set()
    moments = random.Random(5)  # noqa: S311 - for repeatable tests
    for _ in range(4):
        with python(WRITER, path) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            time.sleep(moments.uniform(0.0, 0.25))
            process.send_signal(signal.SIGKILL)
            for line in process.stdout:
                match line.split():
                    case ["step", number]:
                        steps = int(number) + 1
                    case ["blob", digest]:
                        digests.add(digest)
        with SqliteJournal(path) as journal:
            numbers = [record["n"] for _, record in journal.records("s/")]
            assert numbers == list(range(len(numbers)))
            assert steps <= len(numbers) <= steps + 1
            for digest in digests | {record["blob"] for _, record in journal.records("s/")}:
                journal.get_blob(digest)
    assert steps > 0


def test_a_reader_sees_everything_after_the_owner_was_killed(path: Path, owner: subprocess.Popen[str]) -> None:
    owner.kill()
    owner.wait(10)
    with SqliteJournal(path, read_only=True) as reader:
        assert [key for key, _ in reader.records()] == ["here"]


def test_a_live_owner_is_named_to_the_second_one_who_wants_to_write(path: Path, owner: subprocess.Popen[str]) -> None:
    with pytest.raises(RunStateError, match=rf"in use by process {owner.pid}; .*`kill {owner.pid}`"):
        SqliteJournal(path)
    owner.kill()
    owner.wait(10)
    with SqliteJournal(path) as journal:
        assert journal.get("here") == {}


def test_a_second_owner_in_the_same_process_is_refused_as_well(path: Path) -> None:
    with SqliteJournal(path), pytest.raises(RunStateError, match=f"in use by process {os.getpid()}"):
        SqliteJournal(path)
    SqliteJournal(path).close()


def test_readers_follow_a_live_owner_and_cannot_write(path: Path) -> None:
    with SqliteJournal(path) as journal, SqliteJournal(path, read_only=True) as reader:
        journal.put("a", {"n": 1})
        digest = journal.put_blob(b"content")
        assert reader.get("a") == {"n": 1}
        assert reader.get_blob(digest) == b"content"
        iteration = reader.records()
        assert next(iteration)[0] == "a"
        journal.put("b", {})
        assert reader.created_at == journal.created_at
        with pytest.raises(RunStateError, match="opened for reading"):
            reader.put("c", {})
        with pytest.raises(RunStateError, match="opened for reading"):
            reader.put_blob(b"more")


def test_everything_is_there_after_reopening(path: Path) -> None:
    with SqliteJournal(path) as journal:
        journal.put("a", {"text": "\ud800 \x00 ü"})
        digest = journal.put_blob(b"\x00\xff")
        made = journal.created_at
    with SqliteJournal(path, create=False) as journal:
        assert journal.get("a") == {"text": "\ud800 \x00 ü"}
        assert journal.get_blob(digest) == b"\x00\xff"
        assert journal.created_at == made


def test_a_closed_journal_is_one_file_and_refuses_to_be_used(path: Path) -> None:
    journal = SqliteJournal(path)
    journal.put("a", {})
    journal.close()
    journal.close()
    assert {file.name for file in path.parent.iterdir()} == {"journal.sqlite", "journal.sqlite.lock"}
    with pytest.raises(RunStateError, match="is closed"):
        journal.get("a")


def test_a_full_disk_is_a_clear_error_and_loses_nothing(path: Path) -> None:
    with python(FULL_DISK, path) as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    number, _, message = output.partition(" ")
    assert int(number) > 10
    assert "nothing recorded is lost: free disk space, then resume the run" in message
    assert str(path) in message
    with SqliteJournal(path, read_only=True) as journal:
        keys = [key for key, _ in journal.records()]
    assert keys == [f"s/{n}" for n in range(int(number))] + ["space-again"]


@pytest.mark.parametrize("options", [{}, {"read_only": True}, {"create": False}])
def test_a_file_that_is_no_database_is_named(path: Path, options: dict[str, bool]) -> None:
    path.write_bytes(b"\x7fELF" + bytes(5000))
    with pytest.raises(RunStateError, match=r"journal\.sqlite is damaged .*restore it"):
        SqliteJournal(path, **options)


def test_a_database_of_somebody_else_is_not_taken_for_a_journal(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
    for options in ({}, {"read_only": True}):
        with pytest.raises(RunStateError, match="is not the journal of a run"):
            SqliteJournal(path, **options)


def test_a_missing_or_empty_journal_is_only_made_where_that_is_wanted(path: Path) -> None:
    for options in ({"read_only": True}, {"create": False}):
        with pytest.raises(RunStateError, match="does not exist"):
            SqliteJournal(path, **options)
    assert not path.exists()
    path.touch()
    for options in ({"read_only": True}, {"create": False}):
        with pytest.raises(RunStateError, match="is not the journal of a run"):
            SqliteJournal(path, **options)
    with SqliteJournal(path) as journal:
        journal.put("a", {})


def test_a_journal_of_another_schema_version_is_refused_and_left_alone(path: Path) -> None:
    SqliteJournal(path).close()
    execute(path, "UPDATE meta SET value = '99' WHERE name = 'schema_version'")
    with pytest.raises(RunStateError, match="journal schema '99', this version reads '1'"):
        SqliteJournal(path)


def test_a_record_that_changed_on_the_disk_is_noticed(path: Path) -> None:
    with SqliteJournal(path) as journal:
        journal.put("a", {"fitness": 0.5})
        digest = journal.put_blob(b"program")
    execute(path, "UPDATE records SET record = replace(record, '0.5', '0.9')")
    execute(path, "UPDATE blobs SET content = CAST('Program' AS BLOB)")
    with SqliteJournal(path) as journal:
        with pytest.raises(RunStateError, match=r"damaged \(the record of 'a' differs from its digest\)"):
            journal.get("a")
        with pytest.raises(RunStateError, match="damaged"):
            list(journal.records())
        with pytest.raises(RunStateError, match=f"content {digest} differs"):
            journal.get_blob(digest)


@pytest.mark.parametrize("seed", range(6))
def test_bytes_overwritten_anywhere_give_an_error_that_names_the_file_or_the_truth(path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - for repeatable tests
    with SqliteJournal(path) as journal:
        expected = {f"s/{n}": {"n": n, "text": "y" * 500} for n in range(60)}
        for key, record in expected.items():
            journal.put(key, record)
    data = bytearray(path.read_bytes())
    for _ in range(40):
        data[chance.randrange(100, len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)
    found = {}
    message = str(path)
    try:
        with SqliteJournal(path, read_only=bool(seed % 2)) as journal:
            for key, record in expected.items():
                found[key] = journal.get(key) or record  # a damaged index may hide it from a reader
    except RunStateError as error:
        message = str(error)
    assert str(path) in message
    assert found == {key: expected[key] for key in found}


def test_a_truncated_file_is_an_error_that_names_it(path: Path) -> None:
    with SqliteJournal(path) as journal:
        for n in range(50):
            journal.put(f"s/{n}", {"text": "z" * 2000})
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 // 4096 * 4096])
    with pytest.raises(RunStateError, match=r"journal\.sqlite is damaged"):
        SqliteJournal(path)


def test_a_copy_of_a_closed_journal_is_a_journal(path: Path, tmp_path: Path) -> None:
    with SqliteJournal(path) as journal:
        journal.put("a", {"n": 1})
    copy = tmp_path / "elsewhere with spaces?#%.sqlite"
    shutil.copy(path, copy)
    with SqliteJournal(copy) as journal:
        assert journal.get("a") == {"n": 1}


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match=r"cannot lock .*missing.*check that its folder exists"):
        SqliteJournal(tmp_path / "missing" / "journal.sqlite")


def execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)
