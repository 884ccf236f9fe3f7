"""The data of a split: generated in an evaluator container from a secret seed, or read from the user's files.

Generated data are kept under `<home>/hidden/`, mode 0700, one file per evaluator code, image and seed, and never in the
task's folder, which others may read, copy or publish. They are a cache: removing them costs only time.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.domain.candidates import check_path
from orchestrator.domain.frames import MAX_BODY_BYTES, Frame, decode, encode, pack_blobs, unpack_blobs
from orchestrator.domain.policies import MountRole, Purpose
from orchestrator.errors import EvaluatorError, InputError, PrerequisiteError, ProtocolError
from orchestrator.evaluation.claims import task_failure
from orchestrator.evaluation.private import private_folder, read_private, write_private
from orchestrator.evaluation.requests import open_session, task_request
from orchestrator.evaluation.seeds import SeedSource
from orchestrator.evaluation.task_spec import FilesSplit
from orchestrator.evaluation.tasks import Task
from orchestrator.ports import Sandbox, Session
from orchestrator.runtime.user_files import kind_at, read_file

MAX_SPLIT_BYTES = MAX_BODY_BYTES
MAX_SPLIT_FILES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitData:
    """Files as the evaluator finds them in its data folder."""

    files: Mapping[str, bytes] = field(repr=False)
    is_secret: bool
    places: Sequence[str] = ()
    """The user's files that they came from; none: they were generated."""

    @property
    def digest(self) -> str:
        """`sha256:` and 64 hex digits over the manifest."""
        return files_digest(self.files)


class SplitStore:
    """Where the data of splits come from."""

    def __init__(self, *, home: Path, seeds: SeedSource, data_roots: Sequence[Path] = ()) -> None:
        """Keep the places; nothing is read or made yet.

        Args:
            home: The installation's state directory.
            seeds: Of generated splits.
            data_roots: Folders, or files themselves, in which splits that come from files are looked for, in order.
        """
        self._home = home
        self._seeds = seeds
        self._roots = tuple(data_roots)

    @property
    def has_data_roots(self) -> bool:
        """Whether the user named any place for files."""
        return bool(self._roots)

    def load(self, sandbox: Sandbox, task: Task, split: str, *, run_id: str) -> SplitData:
        """The data of a split.

        Raises:
            InputError: The task has no such split.
            PrerequisiteError: A file is missing or empty, or a place of ours is not private or cannot be written.
            EvaluatorError: The task's own code failed to generate it.
            SandboxError: The sandbox failed.
        """
        declared = task.split(split)
        if isinstance(declared, FilesSplit):
            places = {name: self._find(task, split, place) for name, place in declared.files.items()}
            files = {name: _read_data(place) for name, place in places.items()}
            return SplitData(files=files, is_secret=False, places=tuple(map(str, places.values())))
        is_secret = declared.seeded and self._seeds.is_secret
        return SplitData(files=self._generated(sandbox, task, split, run_id), is_secret=is_secret)

    def _find(self, task: Task, split: str, place: str) -> Path:
        """A file that was given itself, lies below a root as declared, or right in one."""
        name = Path(place).name
        for root in self._roots:
            for path in [root] if _is_file(root) else [root / place, root / name]:
                if _is_file(path) and path.name == name:
                    return path
        needs = f"split {split!r} of task {task.name!r} needs the file {place!r}"
        if not self._roots:
            msg = f"{needs}; name the file or its folder with --data"
        else:
            msg = f"{needs}, which is not to be found in {', '.join(map(str, self._roots))}; give it or its folder"
        raise PrerequisiteError(msg)

    def _generated(self, sandbox: Sandbox, task: Task, split: str, run_id: str) -> Mapping[str, bytes]:
        seed = self._seeds.seed(task.name, split)
        volume = sandbox.import_volume(task_files(task, {}), run_id=run_id)
        request = task_request(
            sandbox.policy, task, Purpose.EVALUATOR, run_id, f"generate-{split}", {MountRole.TASK: volume}
        )
        with open_session(sandbox, request) as session:
            cached = self._cache_path(task, split, seed, session.image_digest)
            files = _cached(cached)
            if files is None:
                files = _generate(session, task, split, seed)
                write_private(cached, _pack(files))
            return files

    def _cache_path(self, task: Task, split: str, seed: int, image_digest: str) -> Path:
        parts = [task.name, split, str(seed), files_digest(task.evaluator), image_digest]
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        name = task.name.replace("/", "-")  # of a family's member
        return private_folder(self._home / "hidden") / f"{name}-{split}-{key[:32]}"


def task_files(task: Task, data: Mapping[str, bytes]) -> dict[str, bytes]:
    """What lies at `/task` in an evaluator container: the code, and the data of one split."""
    code = {f"evaluator/{path}": content for path, content in task.evaluator.items()}
    return code | {f"data/{path}": content for path, content in data.items()}


def files_digest(files: Mapping[str, bytes]) -> str:
    """`sha256:` and 64 hex digits over relative paths and contents."""
    manifest = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
    return "sha256:" + hashlib.sha256(canonical).hexdigest()


def _is_file(path: Path) -> bool:
    """Whether a file lies there; where that cannot be told, for instance under a name too long, there is none."""
    try:
        return stat.S_ISREG(kind_at(path))
    except OSError:
        return False


def _read_data(path: Path) -> bytes:
    try:
        content = read_file(path, MAX_SPLIT_BYTES)
    except OSError as error:
        msg = f"cannot read {str(path)!r}: {error.strerror}"
        raise PrerequisiteError(msg) from error
    if not content.strip():
        msg = f"{str(path)!r} is empty; give the whole original file"
        raise PrerequisiteError(msg)
    return content


def _generate(session: Session, task: Task, split: str, seed: int) -> dict[str, bytes]:
    session.send(Frame({"type": "generate", "split": split, "seed": str(seed)}))
    files: dict[str, bytearray] = {}
    size = 0
    is_last = False
    while not is_last:
        frame = session.receive()
        if frame is None:
            outcome = session.finish()
            msg = f"task {task.name!r} did not generate split {split!r}: {outcome.ending.value}, {outcome.detail}"
            raise EvaluatorError(msg)
        if frame.type != "generated":
            raise task_failure(task, f"did not generate split {split!r}", frame)
        size += len(frame.body)
        for name, piece in unpack_blobs(frame.head.get("blobs"), frame.body).items():
            files.setdefault(_checked_name(task, split, name), bytearray()).extend(piece)
        if size > MAX_SPLIT_BYTES or len(files) > MAX_SPLIT_FILES:
            msg = f"task {task.name!r} generates over {MAX_SPLIT_BYTES} bytes or {MAX_SPLIT_FILES} files for {split!r}"
            raise EvaluatorError(msg)
        is_last = frame.head.get("last") is True
    if not files:
        msg = f"task {task.name!r} generated no file for split {split!r}; `generate` must return at least one"
        raise EvaluatorError(msg)
    return {name: bytes(content) for name, content in files.items()}


def _checked_name(task: Task, split: str, name: str) -> str:
    try:
        return check_path(name)
    except InputError as error:
        msg = f"task {task.name!r} generated a file for split {split!r} that cannot be stored: {error}"
        raise EvaluatorError(msg) from error


def _pack(files: Mapping[str, bytes]) -> bytes:
    table, body = pack_blobs(files)
    return encode(Frame({"type": "split", "blobs": table, "digest": files_digest(files)}, body))


def _cached(path: Path) -> Mapping[str, bytes] | None:
    """What was generated before; None: nothing, or it is damaged and was removed."""
    content = read_private(path, 2 * MAX_SPLIT_BYTES)
    if content is None:
        return None
    try:
        frame = decode(content)
        files = unpack_blobs(frame.head.get("blobs"), frame.body)
    except ProtocolError:
        files = {}
    if not files or files_digest(files) != frame.head.get("digest"):
        path.unlink(missing_ok=True)
        return None
    return files
