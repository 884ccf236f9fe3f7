"""What goes into an image, and what never does."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from orchestrator.errors import PrerequisiteError
from orchestrator.sandbox.image_builder import write_context
from orchestrator.sandbox.image_inputs import SOURCES, role_inputs, runner_files
from orchestrator.sandbox.image_rootfs import host_settings, keep_interpreter, parse_manifest
from orchestrator.sandbox.image_tree import read_tree
from orchestrator.sandbox.image_wheels import Wheels, fetch_wheels, installed_path, unpack
from orchestrator.sandbox.images import ROLES


def _entry(
    path: str, content: bytes = b"", *, mode: int = 0o644, uid: int = 0, kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(path)
    entry.mode, entry.uid, entry.type, entry.linkname, entry.size = mode, uid, kind, link, len(content)
    entry.mtime = 1_700_000_000
    return entry, content


def _tar(*entries: tuple[tarfile.TarInfo, bytes]) -> io.BytesIO:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as archive:
        for entry, content in entries:
            archive.addfile(entry, io.BytesIO(content))
    output.seek(0)
    return output


UNPACKED = (
    _entry("./dev/null", kind=tarfile.CHRTYPE),
    _entry("./usr/bin/python3.11", b"elf", mode=0o4755, uid=1000),
    _entry("./usr/bin/python3", kind=tarfile.SYMTYPE, link="python3.11"),
    _entry("./usr/bin/dpkg", b"elf", mode=0o755),
    _entry("./usr/lib/python3.11/os.py", b"text", mode=0o666),
    _entry("./usr/lib/python3.11/ensurepip/__init__.py", b"text"),
    _entry("./usr/lib/x86_64-linux-gnu/libz.so.1", b"elf"),
    _entry("./usr/lib/x86_64-linux-gnu/gconv/IBM1399.so", b"elf"),
    _entry("./usr/share/locale/th/dpkg.mo", b"text"),
    _entry("./usr/share/doc/libc6/copyright", b"text"),
    _entry("./etc/apt/sources.list", b"text"),
    _entry("./evolvarium-packages.sha256", b"a" * 64 + b"  libc6_2.36-9%2bx_amd64.deb\n"),
)


@pytest.fixture
def kept() -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=_tar(*UNPACKED)) as unpacked:
        root = keep_interpreter(unpacked)
    with tarfile.open(fileobj=io.BytesIO(root.archive)) as archive:
        return {member.name: member for member in archive}


def test_the_root_holds_the_interpreter_its_libraries_and_their_licences(kept: dict[str, tarfile.TarInfo]) -> None:
    files = {name for name, member in kept.items() if not member.isdir()}
    assert files == {
        *("usr/bin/python3", "usr/bin/python3.11", "usr/lib/python3.11/os.py", "usr/lib/x86_64-linux-gnu/libz.so.1"),
        *("usr/share/doc/libc6/copyright", "etc/passwd", "etc/group", "etc/nsswitch.conf"),
    }


def test_everything_in_the_root_is_roots_and_nobody_else_may_write_it(kept: dict[str, tarfile.TarInfo]) -> None:
    assert {(member.uid, member.gid) for member in kept.values()} == {(0, 0)}
    assert {member.mode for name, member in kept.items() if name != "target"} == {0o644, 0o755}
    assert kept["target"].mode == 0o1777


def test_the_root_has_the_places_that_are_mounted(kept: dict[str, tarfile.TarInfo]) -> None:
    assert all(kept[name].isdir() for name in ("work", "work/data", "task", "target", "tmp", "proc", "sys", "dev"))


def test_equal_packages_give_equal_roots() -> None:
    archives = set()
    for order in (UNPACKED, UNPACKED[::-1]):
        with tarfile.open(fileobj=_tar(*order)) as unpacked:
            archives.add(keep_interpreter(unpacked).archive)
    assert len(archives) == 1


def test_the_packages_are_recorded_with_their_hashes() -> None:
    (package,) = parse_manifest("a" * 64 + "  libcrypt1_1%3a4.4.33-2_amd64.deb\n")
    assert (package.name, package.version, package.architecture) == ("libcrypt1", "1:4.4.33-2", "amd64")
    assert package.sha256 == "a" * 64


def test_only_the_hosts_proxies_certificates_and_dates_reach_apt() -> None:
    dump = 'Acquire::http::Proxy "http://p.test:1";\nAcquire::Check-Date "false";\nDPkg::Post-Invoke "rm -rf /";\n'
    assert host_settings(dump) == ['Acquire::http::Proxy "http://p.test:1"', 'Acquire::Check-Date "false"']


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("numpy/__init__.py", "numpy/__init__.py"),
        ("numpy/_core/tests/test_umath.py", None),
        ("numpy/_core/tests/_natype.py", "numpy/_core/tests/_natype.py"),
        ("numpy/__init__.pyi", None),
        ("numpy/_core/include/numpy/arrayobject.h", None),
        ("numpy.libs/libscipy_openblas64_.so", "numpy.libs/libscipy_openblas64_.so"),
        ("numpy-2.4.6.dist-info/RECORD", None),
        ("numpy-2.4.6.dist-info/METADATA", "numpy-2.4.6.dist-info/METADATA"),
        ("thing-1.0.data/purelib/thing.py", "thing.py"),
        ("thing-1.0.data/scripts/thing", None),
        ("numpy/", None),
    ],
)
def test_a_wheel_goes_in_without_tests_headers_and_scripts(name: str, expected: str | None) -> None:
    assert installed_path(name) == expected


@pytest.mark.parametrize("name", ["../outside.py", "/etc/passwd.py", "a/../../b.py"])
def test_a_wheel_that_leads_out_of_its_directory_is_refused(name: str) -> None:
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(name, "x")
    with pytest.raises(PrerequisiteError, match="leads out"):
        list(unpack(wheel.getvalue()))


def test_an_image_without_requirements_fetches_nothing(tmp_path: Path) -> None:
    empty = Wheels(files={}, digests={})
    assert fetch_wheels(tmp_path / "requirements.lock", python="3.11", libc="2.36", machine="x86_64") == empty
    (tmp_path / "requirements.lock").write_text("# nothing\n")
    assert fetch_wheels(tmp_path / "requirements.lock", python="3.11", libc="2.36", machine="x86_64") == empty


def test_a_wheel_with_another_hash_is_refused(tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.lock"
    requirements.write_text(f"numpy==2.4.6 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(PrerequisiteError, match="cannot be had"):
        fetch_wheels(requirements, python="3.11", libc="2.36", machine="x86_64")


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (_entry("usr/bin/su", b"x", mode=0o4755), "set-user-id"),
        (_entry("usr/bin/write", b"x", mode=0o2755), "set-group-id"),
        (_entry("etc/passwd", b"x", mode=0o666), "others than root may write"),
        (_entry("home", kind=tarfile.DIRTYPE, mode=0o777), "others than root may write"),
        (_entry("opt/x", b"x", uid=1000), "belongs to user 1000"),
        (_entry("opt/pipe", kind=tarfile.FIFOTYPE), "a device or a pipe"),
    ],
)
def test_an_image_that_breaks_a_rule_is_told_apart(entry: tuple[tarfile.TarInfo, bytes], reason: str) -> None:
    (breach,) = read_tree(_tar(entry)).breaches
    assert reason in breach


def test_the_digest_of_a_tree_depends_on_content_and_mode_but_not_on_time_and_order() -> None:
    first, second = _entry("a", b"1"), _entry("b", b"2")
    later = _entry("a", b"1")
    later[0].mtime += 5
    same = read_tree(_tar(first, second)).sha256
    assert read_tree(_tar(second, later)).sha256 == same
    assert read_tree(_tar(first, _entry("b", b"3"))).sha256 != same
    assert read_tree(_tar(first, _entry("b", b"2", mode=0o755))).sha256 != same
    assert read_tree(_tar(first)).sha256 != same


def test_what_the_engine_adds_to_an_export_is_no_part_of_the_tree() -> None:
    added = (_entry(".dockerenv"), _entry("etc/hosts", b"x"), _entry("dev/console", kind=tarfile.CHRTYPE))
    assert read_tree(_tar(_entry("a", b"1"), *added)) == read_tree(_tar(_entry("a", b"1")))


def test_a_build_context_depends_on_nothing_but_its_files() -> None:
    contexts = set()
    for files in ({"a/b": b"1", "c": b"2"}, {"c": b"2", "a/b": b"1"}):
        output = io.BytesIO()
        write_context(output, files, ["empty"])
        contexts.add(output.getvalue())
    assert len(contexts) == 1


@pytest.mark.parametrize("role", ROLES)
def test_every_image_has_the_shared_modules_and_a_runner_of_its_own(role: str) -> None:
    files = runner_files(SOURCES, role)
    assert "frames.py" in files
    assert files["__main__.py"] == (SOURCES / role / "runner" / "__main__.py").read_bytes()
    assert {"runner", "Dockerfile"} <= set(role_inputs(SOURCES, role))


@pytest.mark.parametrize("role", ROLES)
def test_a_lock_file_of_an_image_pins_with_hashes_and_names_no_host(role: str) -> None:
    text = (SOURCES / role / "requirements.lock").read_text()
    assert "://" not in text
    pins = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert all("==" in line and line.endswith("\\") for line in pins)
