"""Exported packages on the disk: every byte is what the manifest says, or the folder is refused and the file named."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.bootstrap.release.approvals import approve, counting_approvals
from orchestrator.bootstrap.release.folders import read_release, write_release
from orchestrator.domain.releases import ReleaseManifest
from orchestrator.errors import InputError
from tests.answering_lab import package
from tests.release_lab import (
    asking_policy,
    exported,
    key_of,
    manifest_of,
    released_files,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return exported(tmp_path / "p02").folder


def test_what_was_exported_is_read_back_whole(tmp_path: Path) -> None:
    release = exported(tmp_path / "p02")
    assert release.package == package()
    assert release.manifest == manifest_of(package(), released_files(package()))
    assert release.approvals == ()
    assert release.manifest.digest == manifest_of(package(), released_files(package())).digest


def test_a_manifest_is_the_same_bytes_after_a_round_trip_whatever_it_says() -> None:
    manifest = manifest_of(package(), {}, description='\u202e \x00 \N{SNOWMAN} "')
    assert ReleaseManifest.model_validate_json(manifest.content()).content() == manifest.content()
    assert manifest.content().isascii()


def replace(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


TAMPERINGS: dict[str, tuple[Callable[[Path], object], str]] = {
    "changed tool": (
        lambda folder: (folder / "package/tools/analyze.py").write_bytes(b"print(2)\n"),
        r"'package/tools/analyze.py' was changed since it was exported; get it again from whoever exported it",
    ),
    "changed instructions": (
        lambda folder: (folder / "package/eval_instructions.md").write_bytes(b"Obey."),
        r"'package/eval_instructions.md' was changed",
    ),
    "changed audit": (lambda folder: (folder / "audit.json").write_bytes(b"[]"), r"'audit.json' was changed"),
    "emptied licences": (lambda folder: (folder / "LICENCES.md").write_bytes(b""), r"'LICENCES.md' was changed"),
    "added tool": (
        lambda folder: (folder / "package/tools/more.py").write_bytes(b""),
        r"'package/tools/more.py' was added",
    ),
    "added file": (lambda folder: (folder / "notes.txt").write_bytes(b""), r"'notes.txt' was added"),
    "added hidden file": (lambda folder: (folder / ".hidden").write_bytes(b""), r"'.hidden' was added"),
    "added compiled file": (
        lambda folder: (
            (folder / "package/tools/__pycache__").mkdir(),
            (folder / "package/tools/__pycache__/analyze.cpython-313.pyc").write_bytes(b""),
        ),
        r"'package/tools/__pycache__/analyze.cpython-313.pyc' was added",
    ),
    "link that looks like compiled files": (
        lambda folder: (folder / "package/tools/__pycache__").symlink_to("/etc"),
        r"'package/tools/__pycache__' was added",
    ),
    "removed file": (lambda folder: (folder / "sbom.cdx.json").unlink(), r"'sbom.cdx.json' is missing"),
    "removed tool": (
        lambda folder: (folder / "package/tools/analyze.py").unlink(),
        r"'package/tools/analyze.py' is missing",
    ),
    "renamed file": (
        lambda folder: (folder / "README.md").rename(folder / "A.md"),
        r"'A.md' was added",
    ),
    "link to the same content": (
        lambda folder: (
            (folder / "README.md").rename(folder.parent / "elsewhere.md"),
            (folder / "README.md").symlink_to(folder.parent / "elsewhere.md"),
        ),
        r"'README.md' in it is a symbolic link",
    ),
    "pipe": (lambda folder: os.mkfifo(folder / "pipe"), r"'pipe' in it is neither a file nor a folder"),
    "removed manifest": (lambda folder: (folder / "manifest.json").unlink(), r"holds no manifest.json"),
    "manifest that is no JSON": (
        lambda folder: (folder / "manifest.json").write_bytes(b"{"),
        r"manifest.json: .*get it again from whoever exported it, or export it again",
    ),
    "manifest with a field more": (
        lambda folder: replace(folder / "manifest.json", b'{\n  "answers"', b'{\n  "more": 1,\n  "answers"'),
        r"manifest.json: `more` is not a key",
    ),
    "manifest written in another way": (
        lambda folder: replace(folder / "manifest.json", b'"iteration": 2', b'"iteration":  2'),
        r"manifest.json was changed",
    ),
    "manifest of another format": (
        lambda folder: replace(folder / "manifest.json", b'"format": 1', b'"format": 2'),
        r"manifest.json: `format`",
    ),
    "approvals that are no JSON": (
        lambda folder: (folder / "approvals.json").write_bytes(b"{}"),
        r"approvals.json: .*remove it, and approve again",
    ),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_a_folder_that_was_tampered_with_is_refused_and_the_file_named(folder: Path, name: str) -> None:
    tamper, message = TAMPERINGS[name]
    tamper(folder)
    with pytest.raises(InputError, match=message):
        read_release(folder)


def test_a_link_to_a_folder_and_no_folder_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(InputError, match=r"link'.*give the folder itself"):
        read_release(tmp_path / "link")
    with pytest.raises(InputError, match=r"nowhere'.*No such file.*made by `export`"):
        read_release(tmp_path / "nowhere")


def test_a_manifest_that_names_another_package_is_refused(tmp_path: Path) -> None:
    files = released_files(package())
    other = package("Other words.").digest
    write_release(
        tmp_path / "p02", manifest_of(package(), files).model_copy(update={"package": other}), files, force=False
    )
    with pytest.raises(InputError, match=rf"the manifest names {other}, the files give {package().digest}"):
        read_release(tmp_path / "p02")


def test_a_consistent_folder_that_holds_no_package_is_refused_with_its_name(tmp_path: Path) -> None:
    files = {"README.md": b"x"}
    write_release(tmp_path / "empty", manifest_of(package(), files), files, force=False)
    with pytest.raises(InputError, match=r"empty': the package has no 'agent.json'"):
        read_release(tmp_path / "empty")


@pytest.fixture
def approved(folder: Path, tmp_path: Path) -> Callable[[], bool]:
    """Whether the approval of one person, which the package has, counts."""
    key_file, public = key_of(tmp_path, "ann")
    approve(folder, by="ann", note="", key_file=key_file)
    policy = asking_policy(1, ann=public)
    return lambda: len(counting_approvals(read_release(folder), policy)) == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(place=st.integers(0, 10**6), flip=st.integers(1, 255))
def test_no_changed_byte_goes_unseen_by_who_has_approved(
    approved: Callable[[], bool], folder: Path, place: int, flip: int
) -> None:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "approvals.json")
    contents = {path: path.read_bytes() for path in paths}
    whole = [(path, index) for path in paths for index in range(len(contents[path]))]
    path, index = whole[place % len(whole)]
    changed = bytearray(contents[path])
    changed[index] ^= flip
    path.write_bytes(bytes(changed))
    try:
        if path.name == "manifest.json":  # it may be another one that is well formed
            with suppress(InputError):
                assert not approved()
        else:
            with pytest.raises(InputError, match=f"{path.name}' was changed"):
                read_release(folder)
    finally:
        path.write_bytes(contents[path])
    assert approved()
