"""The root file system of every image: an interpreter and its libraries, from the distribution's own packages.

mmdebstrap fetches and unpacks the packages (apt checks their signatures); no maintainer script runs, nothing is
installed, and of what was unpacked only the interpreter and the libraries are kept: no shell, no package manager, no
set-user-id file.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from orchestrator.errors import PrerequisiteError
from orchestrator.sandbox.apt_sources import Source, read_distribution, read_sources
from orchestrator.sandbox.image_lock import DebianPackage

PACKAGES = ("base-files", "libstdc++6", "python3")
FETCH_SECONDS = 900
_MANIFEST = "evolvarium-packages.sha256"
_HOST_SETTING = re.compile(r'^(Acquire::(?:https?::|Check-|Retries|ForceIPv)\S*) "(.*)";$')
_ACCOUNTS = "root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n"
_FILES = {
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "etc/passwd": _ACCOUNTS,
}
_DIRECTORIES = ("dev", "etc", "proc", "run", "sys", "target", "task", "tmp", "usr", "var", "work", "work/data")
_KEPT = re.compile(
    r"""(?x)
      (?:usr/)?(?:bin|sbin|lib|lib32|lib64|libx32)          # directories, or links into /usr on merged systems
    | (?:usr/)?lib(?:64)?/(?:[^/]+/)?[^/]+\.so(?:\.[^/]*)?  # shared libraries
    | usr/bin/python3(?:\.\d+)?
    | usr/lib/python3(?:\.\d+)?/.+
    | etc/python3\.\d+/.+
    | (?:usr/lib|etc)/os-release
    | usr/share/doc/[^/]+/copyright
    """
)
_DROPPED = re.compile(
    r"""(?x)
      usr/lib/python3\.\d+/(?:__phello__|distutils|ensurepip|idlelib|lib2to3|pydoc_data|test|tkinter|turtledemo|venv)/.*
    | usr/lib/python3(?:\.\d+)?/(?:.*/)?__pycache__/.*
    | usr/lib/python3\.\d+/lib-dynload/_(?:test|xxtest|ctypes_test)[^/]*
    | usr/lib/python3\.\d+/EXTERNALLY-MANAGED
    """
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RootFileSystem:
    """A tar archive to import, and what went into it."""

    archive: bytes
    packages: tuple[DebianPackage, ...]


def build_root_file_system(progress: Callable[[str], None]) -> RootFileSystem:
    """Fetch the distribution's packages and keep what an interpreter needs.

    Raises:
        PrerequisiteError: mmdebstrap is missing, or the packages cannot be fetched.
    """
    distribution = read_distribution()
    sources = read_sources(distribution)
    _require_mmdebstrap(progress)
    progress(f"fetching {', '.join(PACKAGES)} from {distribution.id} {distribution.codename}")
    with tempfile.TemporaryDirectory(prefix="evolvarium-base-") as name:
        directory = Path(name)
        directory.chmod(0o755)  # apt reads the keyrings as a user of its own
        target = directory / "root.tar"
        _run_mmdebstrap(_arguments(distribution.codename, target, _lines(sources, directory)))
        with tarfile.open(target) as unpacked:
            return keep_interpreter(unpacked)


def keep_interpreter(unpacked: tarfile.TarFile) -> RootFileSystem:
    """Keep the interpreter and its libraries, owned by root, writable by nobody else, without special bits or times."""
    members: dict[str, tuple[tarfile.TarInfo, bytes]] = {}
    packages: tuple[DebianPackage, ...] = ()
    for member in unpacked:
        path = str(PurePosixPath(member.name.lstrip("/")))
        if path == _MANIFEST:
            packages = parse_manifest(_content(unpacked, member).decode())
        elif (_KEPT.fullmatch(path) and not _DROPPED.fullmatch(path)) and not (member.isdir() and path.count("/") > 1):
            content = _content(unpacked, member) if member.isfile() or member.islnk() else b""
            if member.isfile() or member.islnk() or member.issym() or member.isdir():
                members[path] = (member, content)
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry, content in _entries(members):
            archive.addfile(entry, io.BytesIO(content))
    return RootFileSystem(archive=output.getvalue(), packages=packages)


def parse_manifest(text: str) -> tuple[DebianPackage, ...]:
    """Packages from lines of `sha256sum` over files named `NAME_VERSION_ARCHITECTURE.deb`."""
    packages = []
    for line in text.splitlines():
        digest, file_name = line.split(maxsplit=1)
        name, version, architecture = unquote(PurePosixPath(file_name).stem).split("_")
        packages.append(DebianPackage(name=name, version=version, architecture=architecture, sha256=digest))
    return tuple(sorted(packages, key=lambda package: package.name))


def _entries(members: dict[str, tuple[tarfile.TarInfo, bytes]]) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    for path, text in _FILES.items():
        members[path] = (tarfile.TarInfo(path), text.encode())
    links = {path for path, (member, _) in members.items() if member.issym()}
    parents = {str(parent) for path in members for parent in PurePosixPath(path).parents if str(parent) != "."}
    for path in sorted({*_DIRECTORIES, *parents} - links):
        members[path] = (_directory(path), b"")
    for path in sorted(members):
        member, content = members[path]
        entry = tarfile.TarInfo(path)
        entry.type = tarfile.REGTYPE if member.islnk() else member.type
        entry.linkname = member.linkname if member.issym() else ""
        entry.size = len(content)
        entry.mode = mode_of(path, member)
        yield entry, content


def mode_of(path: str, member: tarfile.TarInfo) -> int:
    """Permission bits of an entry: readable by all, writable by root alone, never set-user-id."""
    if path == "target":
        return 0o1777  # an engine copies this mode to a fresh volume, which an import container fills as its own user
    if member.isdir() or member.mode & 0o111:
        return 0o755
    return 0o644


def _directory(path: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path)
    entry.type = tarfile.DIRTYPE
    return entry


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    handle = archive.extractfile(member)
    return handle.read() if handle else b""


def _lines(sources: Sequence[Source], directory: Path) -> list[str]:
    lines = []
    for number, source in enumerate(sources):
        keyring = source.signed_by
        if "BEGIN PGP" in keyring:
            path = directory / f"key-{number}.asc"
            path.write_text(keyring + "\n", encoding="ascii")
            keyring = str(path)
        lines.append(source.line(keyring))
    return lines


def _arguments(suite: str, target: Path, lines: Sequence[str]) -> list[str]:
    hook = f'cd "$1/var/cache/apt/archives" && sha256sum -- *.deb > "$1/{_MANIFEST}"'
    return [
        "mmdebstrap",
        "--mode=chrootless",  # nothing of the packages runs, so neither root nor a namespace is needed
        "--variant=extract",
        "--format=tar",
        f"--include={','.join(PACKAGES)}",
        f"--extract-hook={hook}",
        *(f"--aptopt={option}" for option in host_settings(_apt_config())),
        suite,
        str(target),
        *lines,
    ]


def host_settings(dump: str) -> list[str]:
    """Proxy, certificate and date settings out of `apt-config dump`; all else of the host's apt stays outside."""
    matches = (_HOST_SETTING.match(line) for line in dump.splitlines())
    return [f'{match[1]} "{match[2]}"' for match in matches if match]


def _apt_config() -> str:
    command = ["apt-config", "dump"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout  # noqa: S603 - fixed


def _run_mmdebstrap(command: Sequence[str]) -> None:
    environment = {
        key: value for key, value in os.environ.items() if key in {"HOME", "PATH", "TMPDIR"} or "proxy" in key.lower()
    }
    environment["LC_ALL"] = "C"
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments and the host's package sources, no shell
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=FETCH_SECONDS,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired as error:
        msg = f"mmdebstrap did not finish within {FETCH_SECONDS} s; check that the package sources can be reached"
        raise PrerequisiteError(msg) from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith(("E:", "Err:", "W:"))]
        reason = "; ".join((lines or done.stderr.splitlines())[-3:])
        msg = f"mmdebstrap failed ({reason}); check that `apt-get update` works, then build again"
        raise PrerequisiteError(msg)


def _require_mmdebstrap(progress: Callable[[str], None]) -> None:
    if shutil.which("mmdebstrap"):
        return
    if os.geteuid() != 0:
        msg = "mmdebstrap is not installed; run `sudo apt-get install mmdebstrap`, then build again"
        raise PrerequisiteError(msg)
    progress("installing the package mmdebstrap, which makes the base image")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", "mmdebstrap"]):
        command = ["apt-get", "--quiet", *arguments]
        done = subprocess.run(  # noqa: S603 - fixed arguments
            command,
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS,
            check=False,
            env=environment,
        )
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            msg = f"`apt-get {' '.join(arguments)}` failed ({reason}); install mmdebstrap by hand, then build again"
            raise PrerequisiteError(msg)
