"""Makes the image that every role starts from: an interpreter, from the distribution's packages or a pinned image."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docker

from orchestrator.errors import PrerequisiteError
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.image_builder import BuildPlan, build, find_image, import_root, read_file, tag_image
from orchestrator.sandbox.image_inputs import INTERPRETER_FILE, interpreter_inputs
from orchestrator.sandbox.image_lock import DebianPackage, Interpreter
from orchestrator.sandbox.image_rootfs import build_root_file_system

LABEL = "evolvarium.image"
PULL_SECONDS = 900.0


def build_interpreter(
    engine: Engine, sources: Path, *, reference: str | None, tag: str, progress: Callable[[str], None]
) -> Interpreter:
    """Build and tag it.

    Args:
        engine: Where to build.
        sources: The folder with one folder per image.
        reference: `IMAGE@sha256:DIGEST`; None: the distribution's packages.
        tag: What keeps it from being pruned.
        progress: Told what happens, a line at a time.

    Raises:
        PrerequisiteError: The packages, mmdebstrap or the referenced image cannot be had.
        SandboxError: The engine failed.
    """
    packages: tuple[DebianPackage, ...] = ()
    if reference is None:
        root = build_root_file_system(progress)
        packages, source = root.packages, import_root(engine, root.archive)
    else:
        source = _pull(engine, reference, progress)
    progress("compiling the interpreter's library")
    names = {"Dockerfile": INTERPRETER_FILE, "prepare.py": "prepare.py"}
    plan = BuildPlan(
        what="the interpreter",
        files={name: (sources / "base" / path).read_bytes() for name, path in names.items()},
        directories=(),
        arguments={"ROOT": source},
        labels={LABEL: "interpreter"},
    )
    image = build(engine, plan)
    tag_image(engine, image, tag)
    facts: dict[str, Any] = json.loads(read_file(engine, image, "/opt/evolvarium/interpreter.json"))
    inputs = interpreter_inputs(sources, reference)
    return Interpreter(image_id=image, tag=tag, reference=reference, packages=packages, inputs=inputs, **facts)


def _pull(engine: Engine, reference: str, progress: Callable[[str], None]) -> str:
    found = find_image(engine, reference)
    if found is None:
        progress(f"pulling {reference}")

        def operation(client: docker.APIClient) -> list[str]:
            return [event["error"] for event in client.pull(reference, stream=True, decode=True) if "error" in event]

        errors = engine.call(f"pull {reference}", operation, seconds=PULL_SECONDS)
        found = find_image(engine, reference)
        if errors or found is None:
            reason = errors[0] if errors else "the engine does not have it afterwards"
            msg = f"{reference} cannot be pulled ({reason}); check the reference, or build without --base"
            raise PrerequisiteError(msg)
    return str(found["Id"])
