"""A home that cannot be written, whatever the reason, is one exit code; the message says where, why and what to do."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from orchestrator.bootstrap.places import find_places, writable_home
from orchestrator.bootstrap.sql.scratch import scratch_folder
from orchestrator.cli.main import execute
from orchestrator.errors import InputError, PrerequisiteError
from orchestrator.sandbox.image_lock import LOCK_FILE, ImageLock, read_lock, write_lock
from tests.unit.test_audit_chain import RECORD

ROOT = Path(__file__).parents[2]
READ_ONLY = Path("/sys/evolvarium-test")
"""Nobody can make a folder there, whoever runs the tests."""
FULL_DISK = """
import json, resource, signal, sys
from pathlib import Path
from orchestrator.domain.audit import AuditRecord
from orchestrator.errors import EvolvariumError
from orchestrator.evaluation.private import write_private
from orchestrator.evaluation.seeds import SeedSource
from orchestrator.sandbox.image_lock import ImageLock, write_lock
from orchestrator.storage.audit import AuditChain
from orchestrator.storage.journal import SqliteJournal
from orchestrator.storage.runs import RunStore

home, record = Path(sys.argv[1]), json.loads(sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
writers = {
    "images.lock.json": lambda: write_lock(home, ImageLock()),
    "audit": lambda: AuditChain(home).append(AuditRecord(**record)),
    "installation.seed": lambda: SeedSource.installation(home),
    "journal.sqlite": lambda: RunStore(home).create(),
    "known.json": lambda: write_private(home / "known.json", b"x"),
}
found = {}
for name, write in writers.items():
    try:
        write()
        found[name] = [0, ""]
    except EvolvariumError as error:
        found[name] = [error.exit_code, str(error)]
print(json.dumps(found))
"""


def test_every_writer_of_a_full_home_names_its_file_the_cause_and_the_way_out(tmp_path: Path) -> None:
    write_lock(tmp_path, ImageLock())
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path), json.dumps(dataclasses.asdict(RECORD))],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert set(found) == {"images.lock.json", "audit", "installation.seed", "journal.sqlite", "known.json"}
    for name, (code, message) in found.items():
        assert code == PrerequisiteError.exit_code == 3, message
        assert str(tmp_path) in message, message
        assert name in message, message
        assert "File too large" in message or "full" in message or "disk I/O error" in message, message
        assert "disk space" in message, message
    assert read_lock(tmp_path) == ImageLock()
    assert [path.name for path in tmp_path.iterdir() if LOCK_FILE in path.name] == [LOCK_FILE]


@pytest.mark.parametrize(
    "arguments",
    [["images", "build"], ["doctor"], ["sql", "ask", "How many?", "--db", "FILE"]],
    ids=lambda arguments: arguments[0],
)
def test_a_home_on_a_read_only_disk_is_the_same_exit_code_as_a_full_one(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/engine.sock")
    (tmp_path / "x.sqlite").write_bytes(b"")
    given = [str(tmp_path / "x.sqlite") if argument == "FILE" else argument for argument in arguments]
    assert execute([*given, "--home", str(READ_ONLY)]) == 3
    printed = capsys.readouterr()
    told = printed.err + printed.out
    assert f"cannot write to the home '{READ_ONLY}': " in told
    assert "check its permissions and the free disk space, or choose another with --home" in told


def test_a_home_that_can_be_on_no_disk_is_wrong_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="Not a directory"):
        writable_home(find_places(tmp_path / "file" / "home", None))


def fail_in(folder: Path, message: str) -> None:
    """What a journal in a folder raises."""
    msg = message.format(folder=folder)
    raise PrerequisiteError(msg)


def test_a_temporary_folder_that_cannot_be_made_or_is_full_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(PrerequisiteError, match=r"cannot keep .* another folder with \$TMPDIR"),
        scratch_folder() as made,
    ):
        fail_in(made, "cannot write {folder}/journal.sqlite: disk is full; free disk space, then resume the run")
    assert not made.exists()
    with pytest.raises(PrerequisiteError, match="no Docker engine"), scratch_folder() as made:
        fail_in(made, "no Docker engine answers")
    monkeypatch.setattr(tempfile, "tempdir", str(READ_ONLY))
    with pytest.raises(PrerequisiteError, match=rf"temporary folder .*{READ_ONLY}.*\$TMPDIR"), scratch_folder():
        pass
