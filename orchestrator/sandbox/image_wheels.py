"""Third-party Python packages of the images: fetched and checked on the trusted side, unpacked without running any.

pip checks every wheel against the hashes of the image's requirements.lock; source distributions, whose set-up would
run, are refused.
"""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from orchestrator.errors import PrerequisiteError

FETCH_SECONDS = 900
OLDEST_MANYLINUX = 17  # manylinux2014: the oldest glibc that today's wheels are built for
_PINNED = re.compile(r"^[A-Za-z0-9._-]+==\S+", re.MULTILINE)
_DATA = re.compile(r"^[^/]+\.data/(?P<scheme>[^/]+)/(?P<path>.+)$")
_DROPPED = re.compile(
    r"""(?x)
      (?:.*/)?tests/.*
    | (?:numpy|scipy)/conftest\.py
    | .*\.(?:pyi|pxd|pyx|h|hpp|c|cpp|f|f90|a|lib|in|toml)
    | numpy/distutils/.*
    | [^/]+\.dist-info/(?:RECORD|WHEEL|INSTALLER|entry_points\.txt|direct_url\.json)
    """
)
_NEEDED = "numpy/_core/tests/_natype.py"  # numpy.testing imports it


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheels:
    """Unpacked wheels."""

    files: Mapping[str, bytes]
    """Content by path below the packages' directory."""
    digests: Mapping[str, str]
    """File name to SHA-256 hex digest of each wheel."""


def fetch_wheels(requirements: Path, *, python: str, libc: str, machine: str) -> Wheels:
    """Download what a requirements.lock pins, and unpack what an image needs of it.

    Args:
        requirements: The lock file, each line with hashes; empty or absent: no wheels.
        python: The image's Python, for instance `3.11`.
        libc: The image's glibc, for instance `2.36`.
        machine: As `uname -m`.

    Raises:
        PrerequisiteError: A wheel cannot be had, or differs from its hash.
    """
    if not requirements.is_file() or not _PINNED.search(requirements.read_text(encoding="utf-8")):
        return Wheels(files={}, digests={})
    with tempfile.TemporaryDirectory(prefix="evolvarium-wheels-") as name:
        directory = Path(name)
        _download(requirements, directory, _target(python, libc, machine))
        archives = {path.name: path.read_bytes() for path in sorted(directory.glob("*.whl"))}
    files = {path: content for archive in archives.values() for path, content in unpack(archive)}
    return Wheels(files=files, digests={key: hashlib.sha256(value).hexdigest() for key, value in archives.items()})


def unpack(wheel: bytes) -> Iterator[tuple[str, bytes]]:
    """(path, content) of a wheel's packages, without tests, headers and scripts.

    Raises:
        PrerequisiteError: A path leaves the directory.
    """
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        for name in archive.namelist():
            path = installed_path(name)
            if path is None:
                continue
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                msg = f"a wheel holds the path {name!r}, which leads out of it; do not use this wheel"
                raise PrerequisiteError(msg)
            yield path, archive.read(name)


def installed_path(name: str) -> str | None:
    """Where a wheel's entry goes (PEP 427); None: nowhere."""
    if name.endswith("/"):
        return None
    match = _DATA.match(name)
    if match and match["scheme"] not in {"purelib", "platlib"}:
        return None
    path = match["path"] if match else name
    return None if _DROPPED.fullmatch(path) and path != _NEEDED else path


def _target(python: str, libc: str, machine: str) -> list[str]:
    newest = int(libc.split(".")[1])
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(newest, OLDEST_MANYLINUX - 1, -1)]
    digits = python.replace(".", "")
    abis = [f"--abi={abi}" for abi in (f"cp{digits}", "abi3", "none")]
    platforms = [f"--platform={tag}" for tag in (*tags, f"manylinux2014_{machine}")]
    return [f"--python-version={python}", "--implementation=cp", *abis, *platforms]


def _download(requirements: Path, directory: Path, target: list[str]) -> None:
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"),
        *("--no-deps", "--require-hashes", "--only-binary=:all:", "--requirement", str(requirements)),
        *("--dest", str(directory), *target),
    ]
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments, no shell
            command, capture_output=True, text=True, errors="replace", timeout=FETCH_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        msg = f"the wheels of {requirements} did not arrive within {FETCH_SECONDS} s; check the package index"
        raise PrerequisiteError(msg) from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")] or [done.stderr.strip()]
        msg = f"the wheels of {requirements} cannot be had: {'; '.join(lines[:3])}; check the package index of pip"
        raise PrerequisiteError(msg)
