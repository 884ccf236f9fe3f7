"""Whoever changes the audit chain breaks it; a crash does not, and what cannot be examined is not called broken."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.domain.audit import AuditRecord
from orchestrator.errors import AuditError, InputError
from orchestrator.runtime.workers import CancelToken, WorkerGroup
from orchestrator.storage.audit import AuditChain
from orchestrator.storage.audit_report import Signatures, entry_hash, parse_head
from orchestrator.storage.signing import load_private_key, sign

ROOT = Path(__file__).parents[2]
RECORD = AuditRecord(
    run_id="0123456789ab",
    attempt_id="i1-c07",
    purpose="candidate",
    container_id="c" * 64,
    image_digest="sha256:" + "1" * 64,
    runtime="runc",
    policy_digest="sha256:" + "2" * 64,
    uid=100_001,
    limits={"wall_seconds": 60.0, "pids": 64},
    mounts={},
    input_digest="sha256:" + "3" * 64,
    output_digest="sha256:" + "4" * 64,
    ending="ok",
    detail="",
    exit_code=0,
    wall_seconds=1.25,
    cpu_seconds=None,
    memory_peak_bytes=None,
    started_at="2026-01-01T00:00:00+00:00",
)
WRITER = """
import dataclasses, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from orchestrator.domain.audit import AuditRecord
from orchestrator.domain.records import from_record
from orchestrator.storage.audit import AuditChain
import json

chain, record = AuditChain(Path(sys.argv[1])), from_record(AuditRecord, json.loads(sys.argv[3]))
for n in range(int(sys.argv[4])):
    chain.append(dataclasses.replace(record, attempt_id=f"{sys.argv[5]}-{n}"))
    print(n, flush=True)
"""


@pytest.fixture
def chain(tmp_path: Path) -> AuditChain:
    return AuditChain(tmp_path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "audit" / "chain.jsonl"


def grow(chain: AuditChain, count: int) -> None:
    for n in range(count):
        chain.append(dataclasses.replace(RECORD, attempt_id=f"i0-c{n:02d}"))


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def write(file: Path, entries: list[dict[str, Any]]) -> None:
    lines = (json.dumps(entry, sort_keys=True, separators=(",", ":")) + "\n" for entry in entries)
    file.write_text("".join(lines))


def writer(home: Path, count: int, name: str) -> subprocess.Popen[str]:
    arguments = [str(home), str(ROOT), json.dumps(dataclasses.asdict(RECORD)), str(count), name]
    return subprocess.Popen([sys.executable, "-c", WRITER, *arguments], stdout=subprocess.PIPE, text=True)


def test_an_honest_chain_verifies_in_every_process(chain: AuditChain, tmp_path: Path, file: Path) -> None:
    grow(chain, 5)
    report = AuditChain(tmp_path).verify()
    assert report.is_intact
    assert (report.records, report.broken_index, report.torn_bytes) == (5, None, 0)
    assert report.signatures is Signatures.VALID
    assert report.head == lines(file)[-1]["hash"]
    assert lines(file)[2]["record"]["attempt_id"] == "i0-c02"


def test_looking_at_a_chain_that_does_not_exist_makes_nothing(chain: AuditChain, tmp_path: Path) -> None:
    report = chain.verify()
    assert (report.is_intact, report.is_broken) == (False, False)
    assert report.signatures is Signatures.EMPTY
    assert report.head is None
    assert any("no chain to examine" in remark for remark in report.remarks)
    with pytest.raises(AuditError, match="there is no audit chain in"):
        chain.export_head()
    assert list(tmp_path.iterdir()) == []
    assert chain.verify("sha256:" + "0" * 64).is_broken


@pytest.mark.parametrize("key", ["key.pem", "public.pem"])
def test_a_chain_that_is_gone_while_a_key_is_there_was_removed(chain: AuditChain, file: Path, key: str) -> None:
    grow(chain, 2)
    for name in {"chain.jsonl", "key.pem", "public.pem"} - {key}:
        (file.parent / name).unlink()
    report = AuditChain(file.parents[1]).verify()
    assert (report.is_intact, report.is_broken) == (False, True)
    assert (report.records, report.broken_index, report.signatures) == (0, 0, Signatures.EMPTY)
    assert report.reason is not None
    assert "it was removed" in report.reason


def test_a_chain_that_has_no_record_yet_is_neither_intact_nor_broken(chain: AuditChain, file: Path) -> None:
    chain.require_writable()
    assert file.exists()
    report = chain.verify()
    assert (report.is_intact, report.is_broken, report.broken_index) == (False, False, None)


@given(st.text("0123456789abcdefABCDEF", min_size=64, max_size=64), st.sampled_from(["", "sha256:", "SHA256:"]))
def test_a_head_is_known_with_and_without_the_name_of_its_hash(digits: str, prefix: str) -> None:
    assert parse_head(f" {prefix}{digits}\n") == f"sha256:{digits.lower()}"


@pytest.mark.parametrize("text", ["", "abc", "sha256:", "0" * 63, "0" * 65, "sha1:" + "0" * 64, "g" * 64, "latest"])
def test_what_is_no_head_is_wrong_input_and_no_alarm(text: str) -> None:
    with pytest.raises(InputError, match="evolvarium audit head"):
        parse_head(text)


def change_content(entries: list[dict[str, Any]]) -> int:
    entries[2]["record"]["ending"] = "error"
    return 2


def change_content_and_hash(entries: list[dict[str, Any]]) -> int:
    entries[2]["record"]["ending"] = "error"
    entries[2]["hash"] = entry_hash(entries[2])
    return 2


def rewrite_the_rest_without_the_key(entries: list[dict[str, Any]]) -> int:
    entries[2]["record"]["ending"] = "error"
    previous = entries[1]["hash"]
    for entry in entries[2:]:
        entry["previous"] = previous
        previous = entry["hash"] = entry_hash(entry)
    return 2


def remove_one(entries: list[dict[str, Any]]) -> int:
    del entries[3]
    return 3


def remove_the_first(entries: list[dict[str, Any]]) -> int:
    del entries[0]
    return 0


def swap_two(entries: list[dict[str, Any]]) -> int:
    entries[1], entries[2] = entries[2], entries[1]
    return 1


def repeat_one(entries: list[dict[str, Any]]) -> int:
    entries.insert(2, entries[1])
    return 2


def add_a_field(entries: list[dict[str, Any]]) -> int:
    entries[4]["note"] = "harmless"
    return 4


def write_nan(entries: list[dict[str, Any]]) -> int:
    entries[2]["record"]["wall_seconds"] = float("nan")
    return 2


def drop_a_signature(entries: list[dict[str, Any]]) -> int:
    entries[1]["signature"] = ""
    return 1


ATTACKS = [
    change_content,
    change_content_and_hash,
    rewrite_the_rest_without_the_key,
    remove_one,
    remove_the_first,
    swap_two,
    repeat_one,
    add_a_field,
    drop_a_signature,
    write_nan,
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_every_change_is_found_where_it_begins(
    chain: AuditChain, file: Path, attack: Callable[[list[dict[str, Any]]], int]
) -> None:
    grow(chain, 6)
    entries = lines(file)
    where = attack(entries)
    write(file, entries)
    report = chain.verify()
    assert not report.is_intact
    assert report.broken_index == report.records == where
    assert report.reason


def test_entries_of_another_chain_of_the_same_key_do_not_fit(chain: AuditChain, tmp_path: Path, file: Path) -> None:
    grow(chain, 1)
    other = tmp_path / "other" / "audit"
    other.mkdir(parents=True)
    for name in ("key.pem", "public.pem"):
        shutil.copy(tmp_path / "audit" / name, other / name)
    AuditChain(tmp_path / "other").append(dataclasses.replace(RECORD, run_id="f" * 12))
    grow(AuditChain(tmp_path / "other"), 3)
    grow(chain, 3)
    write(file, lines(file)[:2] + lines(other / "chain.jsonl")[2:])
    report = chain.verify()
    assert (report.broken_index, report.reason) == (2, "it does not name the hash of the entry before it")


def test_an_entry_cannot_claim_another_key_than_the_one_that_signed_it(
    chain: AuditChain, tmp_path: Path, file: Path
) -> None:
    grow(chain, 2)
    entries = lines(file)
    entries[1]["key"] = "sha256:" + "0" * 64
    entries[1]["hash"] = entry_hash(entries[1])
    entries[1]["signature"] = sign(load_private_key(tmp_path / "audit" / "key.pem"), entries[1]["hash"])
    write(file, entries)
    report = chain.verify()
    assert (report.broken_index, report.signatures) == (1, Signatures.INVALID)


@given(position=st.integers(0), bit=st.integers(0, 7))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_no_single_bit_can_change_unnoticed(chain: AuditChain, file: Path, position: int, bit: int) -> None:
    if not file.exists():
        grow(chain, 3)
    honest = file.read_bytes()
    changed = bytearray(honest)
    changed[position % len(honest)] ^= 1 << bit
    file.write_bytes(changed)
    report = chain.verify()
    file.write_bytes(honest)
    last_newline_is_gone = position % len(honest) == len(honest) - 1
    assert not report.is_intact or (last_newline_is_gone and report.torn_bytes)


def test_truncation_needs_an_outside_head_and_the_report_says_so(chain: AuditChain, file: Path) -> None:
    grow(chain, 4)
    exported = chain.export_head()
    assert (exported["records"], exported["head"]) == (4, lines(file)[-1]["hash"])
    write(file, lines(file)[:2])
    unaware = chain.verify()
    assert unaware.is_intact
    assert unaware.records == 2
    assert any("cannot be detected" in remark for remark in unaware.remarks)
    aware = chain.verify(exported["head"])
    assert not aware.is_intact
    assert aware.expected_head_found is False
    assert any("cut off or rewritten" in remark for remark in aware.remarks)


def test_an_outside_head_is_still_found_after_the_chain_has_grown(chain: AuditChain) -> None:
    grow(chain, 2)
    head = chain.export_head()["head"]
    grow(chain, 2)
    report = chain.verify(head)
    assert report.is_intact
    assert report.expected_head_found is True
    assert report.remarks == ()


def test_a_chain_remade_with_another_key_does_not_hold_the_outside_head(tmp_path: Path) -> None:
    honest, forged = AuditChain(tmp_path / "a"), AuditChain(tmp_path / "b")
    grow(honest, 3)
    grow(forged, 3)
    assert forged.verify().is_intact
    assert not forged.verify(honest.export_head()["head"]).is_intact
    assert honest.export_head()["public_key"] != forged.export_head()["public_key"]


@pytest.mark.parametrize("kept_bytes", [1, 50, -1])
def test_a_torn_last_line_is_no_fault_but_said_to_be_a_crash_or_a_cut(
    chain: AuditChain, tmp_path: Path, file: Path, kept_bytes: int
) -> None:
    grow(chain, 3)
    whole = file.read_bytes()
    grow(chain, 1)
    torn = file.read_bytes()[len(whole) :][:kept_bytes]
    file.write_bytes(whole + torn)
    report = chain.verify()
    assert report.is_intact
    assert (report.records, report.torn_bytes) == (3, len(torn))
    assert any("a crash while writing, or a cut of the last record" in remark for remark in report.remarks)
    grow(AuditChain(tmp_path), 1)
    grow(chain, 1)
    assert chain.verify().is_intact
    assert [entry["torn"] and entry["torn"]["bytes"] for entry in lines(file)] == [None, None, None, len(torn), None]


def test_a_torn_first_line_is_recovered_as_well(chain: AuditChain, file: Path, tmp_path: Path) -> None:
    grow(chain, 1)
    file.write_bytes(file.read_bytes()[:20])
    grow(AuditChain(tmp_path), 1)
    assert chain.verify().records == 1
    assert chain.verify().is_intact


def test_kill_9_at_any_moment_leaves_an_intact_chain_with_all_that_was_acknowledged(tmp_path: Path) -> None:
    acknowledged = 0
    for moment in (0.0, 0.02, 0.07):
        with writer(tmp_path, 100_000, "w") as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(moment)
            process.send_signal(signal.SIGKILL)
            acknowledged += 1 + len(process.stdout.readlines())
        report = AuditChain(tmp_path).verify()
        assert report.is_intact
        assert report.records >= acknowledged
        acknowledged = report.records


def test_threads_and_processes_append_to_one_chain_without_losing_an_entry(tmp_path: Path, file: Path) -> None:
    shared = AuditChain(tmp_path)
    with writer(tmp_path, 40, "a") as one, writer(tmp_path, 40, "b") as other:
        with WorkerGroup("appenders", limit=3, token=CancelToken()) as group:
            for _ in range(3):
                group.spawn("appender", lambda: grow(shared, 20))
        one.communicate(timeout=60)
        other.communicate(timeout=60)
    report = shared.verify()
    assert report.is_intact
    assert report.records == 3 * 20 + 2 * 40
    assert sum(entry["record"]["attempt_id"].startswith("a-") for entry in lines(file)) == 40


def test_the_key_is_made_once_and_only_for_its_owner(chain: AuditChain, tmp_path: Path) -> None:
    grow(chain, 1)
    key = tmp_path / "audit" / "key.pem"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = key.read_bytes()
    grow(AuditChain(tmp_path), 1)
    assert key.read_bytes() == before
    assert {path.name for path in key.parent.iterdir()} == {"key.pem", "public.pem", "chain.jsonl", "lock"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_can_read_is_refused(chain: AuditChain, tmp_path: Path, mode: int) -> None:
    grow(chain, 1)
    (tmp_path / "audit" / "key.pem").chmod(mode)
    with pytest.raises(AuditError, match=f"has mode {mode:04o}"):
        grow(AuditChain(tmp_path), 1)
    assert chain.verify().records == 1


def test_a_lost_key_is_not_silently_replaced(chain: AuditChain, tmp_path: Path) -> None:
    grow(chain, 1)
    (tmp_path / "audit" / "key.pem").unlink()
    with pytest.raises(AuditError, match=r"key\.pem is missing, but .* has entries"):
        grow(AuditChain(tmp_path), 1)


def test_a_foreign_key_is_refused(chain: AuditChain, tmp_path: Path) -> None:
    grow(chain, 1)
    grow(AuditChain(tmp_path / "other"), 1)
    (tmp_path / "audit" / "key.pem").write_bytes((tmp_path / "other" / "audit" / "key.pem").read_bytes())
    with pytest.raises(AuditError, match="do not belong together"):
        grow(AuditChain(tmp_path), 1)
    (tmp_path / "audit" / "key.pem").write_bytes(b"no key")
    with pytest.raises(AuditError, match="holds no Ed25519 private key"):
        grow(AuditChain(tmp_path), 1)


def test_without_the_public_key_the_report_says_that_signatures_were_not_checked(
    chain: AuditChain, tmp_path: Path
) -> None:
    grow(chain, 1)
    (tmp_path / "audit" / "public.pem").unlink()
    report = chain.verify()
    assert report.signatures is Signatures.NO_KEY
    assert not report.is_intact
    assert any("not checked" in remark for remark in report.remarks)


def test_nothing_is_appended_behind_a_damaged_end(chain: AuditChain, tmp_path: Path, file: Path) -> None:
    grow(chain, 1)
    with file.open("ab") as stream:
        stream.write(b"noise\n")
    with pytest.raises(AuditError, match=r"last entry of .* is damaged"):
        grow(AuditChain(tmp_path), 1)
    with pytest.raises(AuditError, match="no readable last entry"):
        chain.export_head()
    assert chain.verify().broken_index == 1


def test_a_full_disk_is_a_clear_error_and_leaves_an_intact_chain(tmp_path: Path) -> None:
    grow(AuditChain(tmp_path), 1)
    script = "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    script += "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n" + WRITER
    arguments = [str(tmp_path), str(ROOT), json.dumps(dataclasses.asdict(RECORD)), "1000", "w"]
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)
    assert "AuditError: cannot use the audit log" in done.stderr
    acknowledged = len(done.stdout.splitlines())
    report = AuditChain(tmp_path).verify()
    assert report.is_intact
    assert (report.records, report.torn_bytes) == (1 + acknowledged, 0)
    grow(AuditChain(tmp_path), 1)
    assert AuditChain(tmp_path).verify().records == 2 + acknowledged


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("a file where the folder should be")
    with pytest.raises(AuditError, match=f"cannot use the audit log {tmp_path / 'audit'}"):
        grow(AuditChain(tmp_path), 1)


def test_an_empty_chain_has_no_head_to_export(chain: AuditChain) -> None:
    chain.require_writable()
    with pytest.raises(AuditError, match="no readable last entry"):
        chain.export_head()


def test_a_log_that_cannot_be_used_is_a_missing_prerequisite_and_known_before_anything_runs(
    chain: AuditChain, tmp_path: Path, file: Path
) -> None:
    chain.require_writable()
    assert not list(lines(file))
    grow(chain, 1)
    (tmp_path / "audit" / "key.pem").chmod(0o644)
    with pytest.raises(AuditError, match="has mode 0644") as caught:
        AuditChain(tmp_path).require_writable()
    assert caught.value.exit_code == 3


def test_a_pipe_in_place_of_the_chain_is_an_error_and_no_finding(tmp_path: Path, chain: AuditChain, file: Path) -> None:
    grow(chain, 1)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(AuditError, match="not a regular file"):
        chain.verify()
    with pytest.raises(AuditError, match="not a regular file"):
        AuditChain(tmp_path).require_writable()


def test_a_chain_without_its_public_key_is_neither_intact_nor_broken(chain: AuditChain, tmp_path: Path) -> None:
    grow(chain, 1)
    (tmp_path / "audit" / "public.pem").unlink()
    report = chain.verify()
    assert (report.is_intact, report.is_broken) == (False, False)


def test_an_outside_head_tells_a_cut_of_the_last_record_from_a_crash(chain: AuditChain, file: Path) -> None:
    grow(chain, 2)
    head = chain.export_head()["head"]
    file.write_bytes(file.read_bytes()[:-5])
    assert chain.verify().is_intact
    assert chain.verify(head).is_broken
