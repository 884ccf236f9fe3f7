"""Finishes an image while it is built; never runs again afterwards.

`interpreter` makes the root file system safe and quick to start from, and notes what it is; `compile DIRECTORY` writes
the byte code that a read-only root could not keep. The byte code is unchecked: an image never changes.
"""

from __future__ import annotations

import compileall
import json
import os
import platform
import py_compile
import site
import stat
import sys
import sysconfig
from pathlib import Path

HOME = Path("/opt/evolvarium")
NOT_OURS = {"/proc", "/sys", "/dev"}
OLDEST = (3, 11)


def compile_directory(directory: Path) -> None:
    """Write byte code for every module below a directory."""
    is_complete = compileall.compile_dir(
        directory,
        quiet=1,
        maxlevels=32,
        workers=0,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    if not is_complete:
        sys.exit(f"not every module in {directory} compiles")


def tighten() -> None:
    """Take special bits and write permission for others away from everything; `/target` alone keeps its own."""
    for root, names, files in os.walk("/"):
        directory = Path(root)
        names[:] = [name for name in names if str(directory / name) not in NOT_OURS]
        for path in (directory / name for name in [*names, *files]):
            mode = path.lstat().st_mode
            wanted = stat.S_IMODE(mode) & 0o755
            if str(path) != "/target" and not stat.S_ISLNK(mode) and stat.S_IMODE(mode) != wanted:
                path.chmod(wanted)


def note_interpreter() -> None:
    """Put the packages' directory on the path, and write down what the trusted side must know to choose wheels."""
    if sys.version_info < OLDEST:
        sys.exit(f"the base image has Python {platform.python_version()}, and 3.11 or newer is needed")
    place = Path(site.getsitepackages()[0])
    place.mkdir(parents=True, exist_ok=True)
    (place / "evolvarium.pth").write_text(f"{HOME / 'packages'}\n", encoding="ascii")
    libc = (os.confstr("CS_GNU_LIBC_VERSION") or "glibc 0.0").split()[1]
    facts = {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "libc": ".".join(libc.split(".")[:2]),
        "machine": platform.machine(),
    }
    (HOME / "interpreter.json").write_text(json.dumps(facts), encoding="ascii")


def main(arguments: list[str]) -> None:
    """Do one step of a build."""
    match arguments:
        case ["interpreter"]:
            note_interpreter()
            compile_directory(Path(sysconfig.get_path("stdlib")))
            tighten()
        case ["compile", *directories]:
            for directory in directories:
                compile_directory(Path(directory))
        case _:
            sys.exit("usage: prepare.py interpreter | compile DIRECTORY...")


if __name__ == "__main__":
    main(sys.argv[1:])
