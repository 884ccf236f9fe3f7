"""Seeds, hidden data and data from files: where they come from, who may read them, when they are made again."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_sandbox import Answer, ScriptedSandbox, frame, generator

from orchestrator.domain.frames import Frame
from orchestrator.domain.policies import MountRole, Purpose
from orchestrator.errors import EvaluatorError, InputError, PrerequisiteError, ProtocolError
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.seeds import SeedSource
from orchestrator.evaluation.task_spec import GeneratedSplit
from orchestrator.evaluation.tasks import Task, load_task

BIN_PACKING = Path(__file__).parents[3] / "tasks" / "online_bin_packing"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def secret_file(home: Path) -> Path:
    (file,) = (home / "secrets").iterdir()
    return file


# Seeds


def test_an_installation_draws_its_secret_once_and_keeps_it_to_itself(tmp_path: Path) -> None:
    first = SeedSource.installation(tmp_path / "home")
    file = secret_file(tmp_path / "home")
    assert (mode(file), mode(file.parent)) == (0o600, 0o700)
    assert SeedSource.installation(tmp_path / "home") == first
    assert first.is_secret
    assert SeedSource.installation(tmp_path / "other") != first


def test_a_secret_is_not_shown_by_accident(tmp_path: Path) -> None:
    source = SeedSource.installation(tmp_path)
    assert source.key.hex() not in repr(source)
    assert repr(source.key) not in repr(source)


def readable(file: Path) -> None:
    file.chmod(0o640)


def entered(file: Path) -> None:
    file.parent.chmod(0o755)


def short(file: Path) -> None:
    file.write_text("abcd\n")


def no_hex(file: Path) -> None:
    file.write_bytes(b"\xff" * 32)


def long(file: Path) -> None:
    file.write_bytes(b"a" * 100)


def linked(file: Path) -> None:
    file.rename(file.parent.parent / "elsewhere")
    file.symlink_to(file.parent.parent / "elsewhere")


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir(mode=0o700)


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, mode=0o600)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (readable, "has mode 0640, so others may read it; run `chmod go= "),
        (entered, "has mode 0755, so others may read it"),
        (short, "does not hold 32 hex digits"),
        (no_hex, "does not hold 32 hex digits"),
        (long, "larger than 64 bytes"),
        (linked, "cannot read"),
        (folder, "Is a directory"),
        (pipe, "is no regular file"),
    ],
)
def test_a_secret_that_may_have_leaked_or_is_damaged_is_refused(
    tmp_path: Path, spoil: Callable[[Path], None], complaint: str
) -> None:
    SeedSource.installation(tmp_path)
    spoil(secret_file(tmp_path))
    with pytest.raises(PrerequisiteError, match=complaint):
        SeedSource.installation(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_secret_of_somebody_else_is_refused(tmp_path: Path) -> None:
    SeedSource.installation(tmp_path)
    os.chown(secret_file(tmp_path), 12345, -1)
    with pytest.raises(PrerequisiteError, match="belongs to user 12345"):
        SeedSource.installation(tmp_path)


def test_the_public_seed_is_the_same_everywhere_and_says_so() -> None:
    public = SeedSource.public()
    assert not public.is_secret
    assert public.seed("online_bin_packing", "hidden") == 287500915009169105580028590531349637590


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16))
def test_seeds_differ_between_tasks_splits_and_installations(one: bytes, other: bytes) -> None:
    a, b = (SeedSource(key=key, is_secret=True) for key in (one, other))
    seeds = [a.seed(task, split) for task in ("p", "q") for split in ("hidden", "fresh")]
    assert len(set(seeds)) == 4
    assert all(0 <= seed < 1 << 128 for seed in seeds)
    assert (a.seed("p", "hidden") == b.seed("p", "hidden")) == (one == other)
    assert a.seed("p", "qr") != a.seed("pq", "r")


# Generated splits


def test_generated_data_come_from_a_container_without_any_data(
    box: ScriptedSandbox, task: Task, store: SplitStore
) -> None:
    played = box.play(Purpose.EVALUATOR, generator())
    data = store.load(box, task, "hidden", run_id="run")
    assert set(data.files) == {"points.json"}
    assert data.is_secret
    assert played.request is not None
    assert set(box.volumes[played.request.mounts[MountRole.TASK]]) == {"evaluator/evaluate.py"}


def test_data_that_are_the_same_of_every_seed_are_no_secret(
    box: ScriptedSandbox, task: Task, store: SplitStore
) -> None:
    box.play(Purpose.EVALUATOR, generator())
    splits = {**task.spec.splits, "hidden": GeneratedSplit(source="generated", title="the same", seeded=False)}
    alike = replace(task, spec=task.spec.model_copy(update={"splits": splits}))
    assert not store.load(box, alike, "hidden", run_id="run").is_secret


def test_splits_have_different_seeds(box: ScriptedSandbox, task: Task, store: SplitStore) -> None:
    box.play(Purpose.EVALUATOR, generator())
    one, other = (store.load(box, task, split, run_id="run") for split in ("hidden", "fresh"))
    assert one.files != other.files
    assert one.digest != other.digest


def test_a_large_file_arrives_in_pieces(box: ScriptedSandbox, task: Task, store: SplitStore) -> None:
    def script(received: Frame) -> Iterable[Answer]:
        del received
        yield frame("generated", b"aab", blobs=[["a", 2], ["b", 1]], last=False)
        yield frame("generated", b"bbc", blobs=[["b", 2], ["c", 1]], last=True)

    box.play(Purpose.EVALUATOR, script)
    assert store.load(box, task, "hidden", run_id="run").files == {"a": b"aa", "b": b"bbb", "c": b"c"}


def asked(box: ScriptedSandbox) -> int:
    """How often data were generated."""
    played = {id(play): play for play in box.opened}.values()
    return sum(one.type == "generate" for play in played for one in play.received)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def load_again(box: ScriptedSandbox, task: Task, home: Path) -> bytes:
    """As another process does."""
    store = SplitStore(home=home, seeds=SeedSource.installation(home))
    return store.load(box, task, "hidden", run_id="run").files["points.json"]


def test_generated_data_are_kept_privately_and_used_again(box: ScriptedSandbox, task: Task, home: Path) -> None:
    box.play(Purpose.EVALUATOR, generator())
    first = load_again(box, task, home)
    assert load_again(box, task, home) == first
    assert asked(box) == 1
    (kept,) = (home / "hidden").iterdir()
    assert (mode(kept), mode(kept.parent)) == (0o600, 0o700)
    assert not any(path.name == "hidden" for path in task.folder.iterdir())


def test_another_image_code_or_secret_makes_the_data_again(box: ScriptedSandbox, task: Task, home: Path) -> None:
    played = box.play(Purpose.EVALUATOR, generator())
    load_again(box, task, home)
    played.image = "sha256:other"
    load_again(box, task, home)
    assert asked(box) == 2
    (task.folder / "evaluator" / "more.py").write_text("MORE = 1\n")
    load_again(box, load_task(task.folder), home)
    assert asked(box) == 3
    secret_file(home).unlink()
    load_again(box, task, home)
    assert asked(box) == 4


@pytest.mark.parametrize("damage", [b"", b"junk", None])
def test_damaged_data_are_made_again(box: ScriptedSandbox, task: Task, home: Path, damage: bytes | None) -> None:
    box.play(Purpose.EVALUATOR, generator())
    first = load_again(box, task, home)
    (kept,) = (home / "hidden").iterdir()
    kept.write_bytes(kept.read_bytes().replace(b"hidden points", b"chosen points") if damage is None else damage)
    assert load_again(box, task, home) == first
    assert asked(box) == 2
    load_again(box, task, home)
    assert asked(box) == 2


def test_data_that_others_may_read_are_refused(box: ScriptedSandbox, task: Task, home: Path) -> None:
    box.play(Purpose.EVALUATOR, generator())
    load_again(box, task, home)
    (home / "hidden").chmod(0o755)
    with pytest.raises(PrerequisiteError, match="so others may read it"):
        load_again(box, task, home)


@pytest.mark.parametrize(
    ("answers", "error", "complaint"),
    [
        ((), EvaluatorError, "did not generate split 'hidden': ok"),
        ((frame("failed", message="Traceback\nZeroDivisionError: x\n"),), EvaluatorError, "ZeroDivisionError: x"),
        ((frame("verdict", status="scored", metrics={}),), ProtocolError, "sent a 'verdict' frame"),
        ((frame("generated", blobs=[["a", 3]], last=True),), ProtocolError, "blob table"),
        ((frame("generated", blobs=[["../a", 0]], last=True),), EvaluatorError, "cannot be stored"),
        ((frame("generated", blobs=[], last=True),), EvaluatorError, "generated no file"),
    ],
)
def test_a_generator_that_fails_is_an_error(
    box: ScriptedSandbox,
    task: Task,
    store: SplitStore,
    answers: tuple[Answer, ...],
    error: type[Exception],
    complaint: str,
) -> None:
    box.play(Purpose.EVALUATOR, lambda _: answers)
    with pytest.raises(error, match=complaint):
        store.load(box, task, "hidden", run_id="run")


def test_a_split_that_the_task_does_not_declare_is_refused(box: ScriptedSandbox, task: Task, store: SplitStore) -> None:
    with pytest.raises(InputError, match="no split 'holdout'; it has hidden, fresh"):
        store.load(box, task, "holdout", run_id="run")


# Splits from files


@pytest.mark.parametrize("given_as", ["root", "file"])
def test_a_file_is_found_below_a_data_root_or_given_itself(box: ScriptedSandbox, tmp_path: Path, given_as: str) -> None:
    file = tmp_path / "data" / "or_library" / "binpack1.txt"
    file.parent.mkdir(parents=True)
    file.write_text("instances\n")
    roots = [tmp_path / "absent", tmp_path / "data"] if given_as == "root" else [file]
    store = SplitStore(home=tmp_path, seeds=SeedSource.public(), data_roots=roots)
    data = store.load(box, load_task(BIN_PACKING), "or1", run_id="run")
    assert (data.files, data.is_secret) == ({"binpack1.txt": b"instances\n"}, False)
    assert box.opened == []


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "needs the file 'or_library/binpack1.txt', which is not to be found in "),
        ("", "is empty"),
        (" \n", "is empty"),
    ],
)
def test_a_missing_or_empty_file_is_an_error_and_no_skip(
    box: ScriptedSandbox, tmp_path: Path, content: str | None, complaint: str
) -> None:
    if content is not None:
        (tmp_path / "or_library").mkdir()
        (tmp_path / "or_library" / "binpack1.txt").write_text(content)
    store = SplitStore(home=tmp_path, seeds=SeedSource.public(), data_roots=[tmp_path])
    with pytest.raises(PrerequisiteError, match=complaint):
        store.load(box, load_task(BIN_PACKING), "or1", run_id="run")
