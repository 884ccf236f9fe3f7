"""Builds one image with the engine's own builder: no network, no registry, nothing but the context we send."""

from __future__ import annotations

import io
import json
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import docker

from orchestrator.errors import SandboxError
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.image_tree import Tree, read_tree

STEP_SECONDS = 600.0  # a step is silent while it runs
_BUILT = re.compile(r"Successfully built ([0-9a-f]{12,64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan:
    """One call of the builder."""

    what: str
    files: Mapping[str, bytes]
    """The context, with its `Dockerfile`."""
    directories: Sequence[str]
    """Directories that the context has even when nothing is in them."""
    arguments: Mapping[str, str]
    labels: Mapping[str, str]


def build(engine: Engine, plan: BuildPlan) -> str:
    """Build an image and return its id. What was built from equal contexts before is taken from the builder's cache.

    Raises:
        SandboxError: A step failed, or the engine did.
    """
    with tempfile.TemporaryFile(prefix="evolvarium-context-") as context:
        write_context(context, plan.files, plan.directories)
        context.seek(0)
        short = engine.call(f"build {plan.what}", lambda client: _run(client, context, plan), seconds=STEP_SECONDS)
    return image_id(engine, short)


def write_context(output: IO[bytes], files: Mapping[str, bytes], directories: Sequence[str]) -> None:
    """Files as a tar archive that depends on nothing but them."""
    parents = {str(parent) for path in files for parent in Path(path).parents} | set(directories)
    with tarfile.open(fileobj=output, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted({*parents, *files} - {"."}):
            entry = tarfile.TarInfo(path)
            content = files.get(path)
            entry.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
            entry.mode = 0o755 if content is None else 0o644
            entry.size = len(content or b"")
            archive.addfile(entry, io.BytesIO(content or b""))


def image_id(engine: Engine, name: str) -> str:
    """The full id of an image.

    Raises:
        SandboxError: There is none of this name.
    """
    found = find_image(engine, name)
    if found is None:
        msg = f"the engine has no image {name!r} although it has just made it; build again"
        raise SandboxError(msg)
    return str(found["Id"])


def find_image(engine: Engine, name: str) -> dict[str, Any] | None:
    """What the engine knows of an image, by id or tag; None: there is none."""
    return engine.find(f"inspect image {name[:40]}", lambda client: dict(cast(Any, client).inspect_image(name)))


def tag_image(engine: Engine, image: str, tag: str) -> None:
    """Let a tag name an image, whatever it named before."""
    repository, name = tag.rsplit(":", 1)
    engine.call(f"tag {tag}", lambda client: client.tag(image, repository, name, force=True))


def import_root(engine: Engine, archive: bytes) -> str:
    """Import a root file system and return the image's id."""
    answer = engine.call(
        "import the root file system",
        lambda client: cast(Any, client).import_image_from_data(archive),
        seconds=STEP_SECONDS,
    )
    lines = [json.loads(line) for line in str(answer).splitlines() if line.strip()]
    identifier = str(lines[-1].get("status", "")) if lines else ""
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", identifier):
        msg = f"the engine did not import the root file system: {str(answer)[:200]}"
        raise SandboxError(msg)
    return identifier


def inspect_tree(engine: Engine, image: str) -> Tree:
    """Read all files of an image through a container that is made for it and never started."""

    def operation(client: docker.APIClient) -> Tree:
        container = str(client.create_container(image, command=["-"], network_disabled=True)["Id"])
        try:
            with io.BufferedReader(_Chunks(client.export(container, chunk_size=1 << 20)), 1 << 20) as stream:
                return read_tree(stream)
        finally:
            client.remove_container(container, force=True)

    return engine.call(f"export image {image[:19]}", operation, seconds=STEP_SECONDS)


def read_file(engine: Engine, image: str, path: str) -> bytes:
    """One small file of an image, likewise."""

    def operation(client: docker.APIClient) -> bytes:
        container = str(client.create_container(image, command=["-"], network_disabled=True)["Id"])
        try:
            chunks, _ = client.get_archive(container, path)
            with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
                handle = archive.extractfile(archive.getmembers()[0])
                return handle.read() if handle else b""
        finally:
            client.remove_container(container, force=True)

    return engine.call(f"read {path} of image {image[:19]}", operation)


class _Chunks(io.RawIOBase):
    """Chunks of bytes as a readable stream."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer, as io defines it
        while not self._rest:
            try:
                self._rest = next(self._chunks)
            except StopIteration:
                return 0
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _run(client: docker.APIClient, context: IO[bytes], plan: BuildPlan) -> str:
    built = ""
    printed: list[str] = []
    for event in client.build(
        fileobj=context,
        custom_context=True,
        buildargs=dict(plan.arguments),
        labels=dict(plan.labels),
        network_mode="none",
        rm=True,
        forcerm=True,
        pull=False,
        decode=True,
        use_config_proxy=False,
    ):
        if "error" in event:
            msg = f"building {plan.what} failed: {event['error']}; the builder said: {' / '.join(printed[-5:])}"
            raise SandboxError(msg)
        text = str(event.get("stream", "")).strip()
        printed += [text] if text else []
        match = _BUILT.search(text)
        built = match[1] if match else built
    if not built:
        msg = f"the builder ended without an image for {plan.what}; it said: {' / '.join(printed[-5:])}"
        raise SandboxError(msg)
    return built
