"""From a run to a folder that holds one package, and everything an operator needs to judge it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.bootstrap.header import program_version
from orchestrator.bootstrap.release.folders import require_room, write_release
from orchestrator.bootstrap.release.sbom import bill_of_materials
from orchestrator.bootstrap.release.tool_audit import ToolAudit, audit_tool
from orchestrator.bootstrap.robophd.results import EvolutionResults, FinalScore, read_results
from orchestrator.bootstrap.runs import find_run, run_store
from orchestrator.bootstrap.sql.opening import OpenFor
from orchestrator.domain.releases import (
    AUDIT,
    LICENCES,
    PACKAGE_FOLDER,
    README,
    SBOM,
    Measured,
    ReleasedImage,
    ReleaseManifest,
)
from orchestrator.errors import PrerequisiteError, RunStateError
from orchestrator.methods.robophd.members import Member, load_member
from orchestrator.sandbox.image_lock import ImageLock, read_lock


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A package that was written."""

    folder: Path
    manifest: ReleaseManifest
    audit: ToolAudit


def export_package(
    name: str, agent: str | None, folder: Path, opener: OpenFor, *, force: bool, project: Path
) -> Exported:
    """Write a package of a run that has ended.

    Args:
        name: Of the run.
        agent: Id of the package; None: the champion.
        folder: Where to.
        opener: Of the caller; the audit runs under its policy.
        force: Replace a package that is there.
        project: Holds our own licence.

    Raises:
        RunStateError: The run has not ended, or the package was not scored on the selection databases.
        InputError: The folder is not empty, or cannot be written.
        PrerequisiteError: Our own licence cannot be read, or an image of the run is not built here.
        EvolvariumError: As `audit_tool`.
    """
    require_room(folder, force=force)
    ours = _our_licence(project)
    results, header, member = _read(name, agent, opener)
    audit = audit_tool(member.package, (), opener)
    lock = read_lock(opener.places.home)
    files = {
        **{f"{PACKAGE_FOLDER}/{path}": content for path, content in member.package.tree.items()},
        AUDIT: _json(audit.document()),
        SBOM: _json(bill_of_materials(lock, header["images"])),
        LICENCES: _licences(member, lock, header["images"], ours),
    }
    manifest = _manifest(results, header, member, lock, files)
    files[README] = _readme(manifest)
    manifest = manifest.model_copy(update={"files": _digests(files)})
    write_release(folder, manifest, files, force=force)
    return Exported(folder=folder, manifest=manifest, audit=audit)


def _read(name: str, agent: str | None, opener: OpenFor) -> tuple[EvolutionResults, Mapping[str, Any], Member]:
    """The run's figures, its record, and the package that is asked for."""
    store = run_store(opener.places)
    run_id = find_run(store, name)
    with store.open(run_id, read_only=True) as journal:
        results = read_results(run_id, journal)
        header = journal.get("run") or {}
        if results.champion is None:
            msg = f"run {run_id} has not ended, so it has no champion; `evolvarium resume {run_id}` ends it"
            raise RunStateError(msg)
        member = load_member(agent or results.champion, journal)
    if member.id not in results.selection:
        msg = (
            f"package {member.id!r} was not scored on the selection databases, so nothing says how good it is; "
            f"export one that was: {', '.join(results.selection) or 'there is none'}"
        )
        raise RunStateError(msg)
    return results, header, member


def released_images(lock: ImageLock, images: Mapping[str, str]) -> dict[str, ReleasedImage]:
    """The images of a run; one that was built since then has the role, and says nothing of what the run's held.

    Args:
        lock: Of the home, now.
        images: Role to the digest of the run's image.
    """
    locked = {image.image_id: image.tree_sha256 for image in lock.images.values()}
    return {role: ReleasedImage(image_id=digest, tree_sha256=locked.get(digest)) for role, digest in images.items()}


def _our_licence(project: Path) -> str:
    path = project / "LICENSE"
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        msg = f"cannot read our own licence {str(path)!r}: {error.strerror}; restore it from the distribution"
        raise PrerequisiteError(msg) from error


def _manifest(
    results: EvolutionResults, header: Mapping[str, Any], member: Member, lock: ImageLock, files: Mapping[str, bytes]
) -> ReleaseManifest:
    right, questions = results.selection[member.id]
    return ReleaseManifest(
        name=member.id,
        run=results.run_id,
        package=member.package.digest,
        files=_digests(files),
        parents=member.parents,
        description=member.description,
        iteration=member.iteration,
        models=dict(results.models),
        answers=results.settings.answers.model_dump(mode="json"),
        policy=dict(header["policy"]),
        images=released_images(lock, header["images"]),
        select=Measured(
            model=results.models["answerer"],
            right=right,
            questions=questions,
            databases=tuple(results.data["select"]),
        ),
        final=tuple(_measured(score) for score in results.finals if score.package == member.id),
        evolvarium=program_version(),
    )


def _measured(score: FinalScore) -> Measured:
    return Measured(
        model=score.model,
        right=sum(score.right.values()),
        questions=len(score.right),
        databases=tuple(score.databases),
    )


def _digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {path: hashlib.sha256(content).hexdigest() for path, content in sorted(files.items())}


def _licences(member: Member, lock: ImageLock, roles: Mapping[str, str], ours: str) -> bytes:
    packages = () if lock.interpreter is None else lock.interpreter.packages
    wheels = sorted({file for role in roles if role in lock.images for file in lock.images[role].wheels})
    made_here = (
        f"The package `{member.id}` (the files below `{PACKAGE_FOLDER}/`) was written by a language model in a run of "
        "yours; no licence comes with it from us. Whether the model's provider sets terms is for you to see."
    )
    images = (
        "It runs in images that are not part of this folder. They are made of packages of the Debian distribution, "
        "each under the licences in its `copyright` file (https://www.debian.org/legal/licenses/), and of wheels:"
    )
    listed = [f"- {package.name} {package.version}" for package in packages] + [f"- {wheel}" for wheel in wheels]
    own = "The runner in these images, and the command that answers with the package, are Evolvarium's:"
    parts = ["# Licences", made_here, images, "\n".join(listed), own, ours.strip("\n")]
    return ("\n\n".join(part for part in parts if part) + "\n").encode()


def _readme(manifest: ReleaseManifest) -> bytes:
    select = manifest.select
    chosen = (
        f"Chosen in run {manifest.run} by {select.right} of {select.questions} right answers on "
        f"{', '.join(select.databases)} (model {select.model})."
    )
    finals = [
        f"Final figures: {one.right} of {one.questions} on {', '.join(one.databases)} (model {one.model})."
        for one in manifest.final
    ]
    files = [
        "- `package/`: the analysis tool, the instructions, and how the tool is run",
        "- `manifest.json`: digests of every file, and where all of it comes from",
        f"- `{AUDIT}`: what the tool was seen to do in its sandbox",
        f"- `{SBOM}`: what the images were made of when it was exported (CycloneDX 1.5)",
        "- `approvals.json`: who approved of it, once somebody has",
    ]
    uses = [
        'Use it: `evolvarium answer --package DIR --db FILE "QUESTION"`',
        "Look at its tool: `evolvarium audit tool DIR`",
        "Approve of it: `evolvarium approve DIR --by NAME`",
    ]
    parts = [f"# Package {manifest.name}", "\n".join([chosen, *finals]), "\n".join(files), "\n".join(uses)]
    return ("\n\n".join(parts) + "\n").encode()


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=2, ensure_ascii=True) + "\n").encode()
