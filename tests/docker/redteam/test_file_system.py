"""F, P and the parts of R, S and X that one look around from inside answers: files, mounts, privileges, descriptors."""

from __future__ import annotations

import hashlib
import io
import secrets
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hostility import RUN

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.frames import Frame, pack_blobs
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import MountRole, Policy, Purpose
from orchestrator.errors import InputError
from orchestrator.ports import SessionRequest
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.image_builder import inspect_tree
from orchestrator.sandbox.images import ImageStore
from orchestrator.sandbox.settings import ENVIRONMENT, HOSTNAME, OPEN_FILES, TARGETS

pytestmark = pytest.mark.docker

Found = Mapping[str, Any]
OURS = {"/tmp", "/work", "/dev/shm"}  # noqa: S108 - places inside the container
GIVEN = {"/tmp", "/work"}  # noqa: S108 - likewise; the policy bounds them together
ENGINES_OWN = {"/proc", "/dev", "/dev/pts", "/dev/mqueue", "/sys", "/sys/fs/cgroup"}
WALK = """
import os, re, sys
def search(data, where):
    for match in re.findall(rb"canary [0-9a-f]{32}", data):
        print(match.decode(), where)
for root, names, files in os.walk("/"):
    if root == "/sys":
        names[:] = []
    for name in files:
        path = os.path.join(root, name)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            for _ in range(64):
                data = os.read(descriptor, 1 << 20)
                if not data:
                    break
                search(data, path)
        except OSError:
            pass
        os.close(descriptor)
search(repr(os.environ).encode(), "environment")
"""


@pytest.fixture
def found(survey: Callable[..., Found]) -> Found:
    return survey("files")


def answers(found: Found, prefix: str) -> dict[str, str]:
    return {name: answer for name, answer in found.items() if name.startswith(prefix)}


@pytest.mark.probe("F1", "write to every folder and to system files")
def test_nothing_outside_the_tmpfs_can_be_written(found: Found, expected: Found) -> None:
    assert found["created"] == []
    tried = answers(found, "write /")
    assert len(tried) > 20
    assert {path for path, answer in tried.items() if answer == "allowed"} <= expected["guest-writes"]
    assert {place for place in OURS if found[f"copy-{place}"] == "allowed"} >= {"/work"}  # the survey can write


@pytest.mark.probe("F2", "change a read-only mount, remount it, reopen through /proc/self/fd")
def test_a_mounted_volume_cannot_be_changed(found: Found, public_text: bytes) -> None:
    assert found["public"] == public_text.decode()
    tried = answers(found, "mount-")
    assert len(tried) >= 10
    assert set(tried.values()) <= {"EROFS", "EACCES", "EPERM", "EXDEV"}, tried
    assert found["remount"] in {"EPERM", "ENOSYS"}


@pytest.mark.probe("F3", "walk the whole file system for a canary of hidden data, while an evaluator holds it")
def test_hidden_data_is_nowhere_in_the_file_system(
    analyse: Callable[..., Any], sandbox: DockerSandbox, public_text: bytes, policy: Policy
) -> None:
    hidden = f"canary {secrets.token_hex(16)}"
    volume = sandbox.import_volume({"data/hidden.txt": hidden.encode(), "evaluator/evaluate.py": b""}, run_id=RUN)
    assert Purpose.EVALUATOR in policy.purposes
    request = SessionRequest(purpose=Purpose.EVALUATOR, run_id=RUN, attempt_id="probe", mounts={MountRole.TASK: volume})
    with sandbox.session(request):
        result = analyse(WALK)
    text = result.output.decode(errors="replace")
    assert hidden not in text
    assert public_text.decode().strip().removeprefix("public ") in text  # what may be found is found


@pytest.mark.probe("F4", "name host paths where the trusted side expects files of its own")
@pytest.mark.parametrize(
    "path", ["/etc/shadow", "../../etc/shadow", "a/../../b", "~/.ssh/id_rsa", "a\0b", "", ".", "a//b"]
)
def test_a_path_that_leads_elsewhere_is_no_path(sandbox: DockerSandbox, path: str) -> None:
    with pytest.raises(InputError, match="not allowed"):
        FileTree({path: b"x"})
    with pytest.raises(InputError, match="not allowed"):
        sandbox.import_volume({path: b"x"}, run_id=RUN)
    if path != "/etc/shadow":
        return
    table, body = pack_blobs({"analysis.py": b"", "../../../tmp/x": b"x"})
    with sandbox.session(SessionRequest(purpose=Purpose.ANALYSIS, run_id=RUN, attempt_id="probe")) as session:
        session.send(Frame({"type": "start", "script": "analysis.py", "blobs": table}, body))
        assert session.receive() is None
        assert session.finish(Ending.NO_RESULT).ending is Ending.ERROR


@pytest.mark.probe("F8", "archives as files: a bomb, absolute and climbing members")
def test_an_archive_stays_the_bytes_it_is(analyse: Callable[..., Any]) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../work/escaped", b"x")
        archive.writestr("/tmp/escaped", bytes(64 << 20))  # noqa: S108 - a name in an archive
    digest = hashlib.sha256(packed.getvalue()).hexdigest()
    result = analyse(
        "import hashlib, os\nprint(sorted(name for name in os.listdir() if name != 'data'))\n"
        "print(hashlib.sha256(open('bomb.zip', 'rb').read()).hexdigest(), os.listdir('/tmp'))\n",
        files={"bomb.zip": packed.getvalue()},
    )
    assert result.output.decode() == f"['analysis.py', 'bomb.zip']\n{digest} []\n"


@pytest.mark.probe("F9", "delete everything that can be deleted; inputs, image and host are hashed before and after")
def test_deleting_everything_changes_only_its_own_tmpfs(
    analyse: Callable[..., Any], engine: Engine, images: ImageStore, public_text: bytes, tmp_path: Path
) -> None:
    on_host = tmp_path / "witness"
    on_host.write_bytes(public_text)
    image = images.locked().images["analysis"]
    assert inspect_tree(engine, image.image_id).sha256 == image.tree_sha256
    result = analyse(
        "import os\nopen('/tmp/mine', 'w').close()\ngone = 0\n"
        "for root, names, files in os.walk('/', topdown=False):\n"
        "    for path in [os.path.join(root, name) for name in files + names]:\n        try:\n"
        "            os.unlink(path) if not os.path.isdir(path) or os.path.islink(path) else os.rmdir(path)\n"
        "            gone += 1\n        except OSError:\n            pass\nprint('deleted', gone)\n"
    )
    deleted = int(result.output.split()[-1])
    assert 1 <= deleted < 10  # its script, the link to the data and what it made
    assert inspect_tree(engine, image.image_id).sha256 == image.tree_sha256
    assert on_host.read_bytes() == public_text
    assert analyse("print(open('data/public.txt').read(), end='')").output == public_text


@pytest.mark.probe("F10", "setuid programs and file capabilities in the image, a setuid program of its own")
def test_no_program_lends_its_owner(found: Found) -> None:
    assert found["special"] == []
    assert {found[f"execute-{place}"] for place in OURS} <= {"EACCES", "EPERM", "ENOSPC"}


@pytest.mark.probe("F11", "handles of the host: /proc/*/root, /proc/*/cwd, open descriptors and the way up from them")
def test_no_handle_leads_to_the_host(found: Found) -> None:
    for links in found["processes"].values():
        assert links["root"] in {"/", "<EACCES>", "<ENOENT>", "<EPERM>"}, links
        assert links["cwd"].startswith(("/tmp", "/work", "/", "<E"))  # noqa: S108 - inside the container
    assert found["way-up"] == []
    assert found["host-through-root"] != "allowed"
    known = ("pipe:", "/dev/null", "host:", "anon_inode:", "/proc/", "socket:", "/work/data/public.txt")
    assert all(target.startswith(known) for target in found["descriptors"].values()), found["descriptors"]


@pytest.mark.probe("P1", "capabilities, also ambient ones")
def test_there_is_no_capability(found: Found) -> None:
    sets = {name: found["status"].get(name) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    assert {value.strip() for value in sets.values() if value is not None} == {"0" * 16}
    assert sets["CapEff"] is not None
    assert found["ambient-capability"] in {"EPERM", "EINVAL"}


@pytest.mark.probe("P2", "new privileges and the system call filter")
def test_the_kernel_filters_calls_and_gives_no_new_privileges(found: Found, expected: Found) -> None:
    assert found["status"].get("NoNewPrivs") == expected["no-new-privileges"]
    assert found["status"].get("Seccomp") == expected["seccomp"]


@pytest.mark.probe("P3", "be root, or somebody else's user")
def test_it_is_nobody_and_stays_so(found: Found, survey: Callable[..., Found]) -> None:
    assert found["uid"] == found["gid"]
    assert found["uid"] > 65534
    assert set(found["groups"]) <= {found["gid"]}
    calls = survey("kernel")
    for name in ("setuid", "setgid", "setresuid", "setgroups"):
        assert calls[name] in {"EPERM", "ENOSYS"}
    assert calls["capset"] != "allowed"
    assert found["chown"] in {"EPERM", "EACCES"}
    assert {links["uid"] for links in found["processes"].values()} <= {found["uid"], None}


@pytest.mark.probe("P4", "device nodes, found and made")
def test_there_is_no_device_of_the_host(found: Found, survey: Callable[..., Found], expected: Found) -> None:
    assert set(found["devices"]) <= expected["guest-devices"]
    calls = survey("kernel")
    made = {name: calls[name] for name in ("mknodat-block", "mknodat-character") if name not in expected["guest-calls"]}
    assert set(made.values()) <= {"EPERM", "ENOSYS"}
    assert "allowed" not in answers(found, "open-device-").values()


@pytest.mark.probe("P5", "the label of a Linux security module")
def test_the_container_is_confined_where_the_host_has_a_security_module(found: Found, engine: Engine) -> None:
    options = " ".join(engine.info().get("SecurityOptions") or [])
    if "name=apparmor" not in options and "name=selinux" not in options:
        pytest.skip("this host has no security module (AppArmor, SELinux)")
    assert found["label"] not in {"", "unconfined", "kernel"}
    assert "unconfined" not in found["label"]


@pytest.mark.probe("E6", "cgroup v1 release_agent")
def test_no_control_group_can_be_written(found: Found) -> None:
    tried = {**answers(found, "write /sys/fs/cgroup")}
    assert len(tried) >= 3
    assert set(tried.values()) <= {"EROFS", "ENOENT", "EACCES", "EPERM"}, tried


@pytest.mark.probe("E7", "core_pattern, modprobe, uevent_helper, sysrq-trigger, binfmt_misc, uid_map")
def test_no_switch_of_the_kernel_can_be_thrown(found: Found, expected: Found) -> None:
    tried = answers(found, "write /proc/") | answers(found, "write /sys/")
    assert len(tried) >= 10
    assert {path for path, answer in tried.items() if answer == "allowed"} <= expected["guest-writes"]


@pytest.mark.probe("E11", "mounts that propagate, or are writable, or lack nosuid, nodev, noexec")
def test_every_writable_mount_is_one_of_ours_and_none_propagates(found: Found, expected: Found) -> None:
    mounts = {mount["place"]: mount for mount in found["mounts"]}
    assert len(mounts) > 5
    for place, mount in mounts.items():
        assert not [option for option in mount["optional"] if option.startswith("shared:")], mount
        if "rw" in mount["options"] and place not in ENGINES_OWN and not is_a_mask(mount):
            assert place in OURS, mount
            assert mount["kind"] == "tmpfs"
            assert expected["mount-flags"] <= set(mount["options"]), mount
    assert "ro" in mounts["/"]["options"]
    assert "ro" in mounts[TARGETS[MountRole.PUBLIC]]["options"]


def is_a_mask(mount: Mapping[str, Any]) -> bool:
    """The container's own null device, or an empty read-only file system, over what shall not be seen."""
    return mount["root"] == "/null" or mount["place"].startswith(("/proc/", "/sys/"))


@pytest.mark.probe("R14", "core dumps: the limit, raising it, a crash, core_pattern")
def test_a_crash_leaves_no_core(found: Found) -> None:
    assert found["core"] == [0, 0]
    assert found["crash"] == "signal 11"
    assert found["left-by-crash"] == []
    assert found["write /proc/sys/kernel/core_pattern"] != "allowed"


@pytest.mark.probe("R18", "disk I/O storm: is there any disk to write to?")
def test_no_disk_can_be_written(found: Found) -> None:
    kinds = {mount["kind"] for mount in found["mounts"] if mount["place"] in OURS}
    assert kinds == {"tmpfs"}
    assert found["created"] == []


@pytest.mark.probe("S4", "environment, arguments, host name and mounts name nothing that is hidden")
def test_what_a_script_can_read_of_itself_is_fixed(found: Found, task: Any, engine: Engine) -> None:
    inherited = {name: found["environment"].get(name) for name in ENVIRONMENT}
    assert inherited == dict(ENVIRONMENT)
    assert set(found["environment"]) <= {*ENVIRONMENT, "HOSTNAME", "LC_CTYPE", "PWD", "SHLVL", "TERM"}
    assert found["hostname"] == HOSTNAME
    told = " ".join(
        [
            *found["environment"].values(),
            *(links["cmdline"] + links["environ"] for links in found["processes"].values()),
            *(f"{mount['place']} {mount['source']}" for mount in found["mounts"]),
        ]
    )
    for secret in (task.name, RUN, "hidden", str(Path.home() / ".local"), engine.host.removeprefix("unix://")):
        assert secret not in told


@pytest.mark.probe("S3", "descriptors inherited from the engine or the runner")
def test_a_script_has_its_three_descriptors_and_no_other_pipe(found: Found) -> None:
    pipes = {name: target for name, target in found["descriptors"].items() if target.startswith("pipe:")}
    assert set(pipes) <= {"0", "1", "2"}, found["descriptors"]


@pytest.mark.probe("X3", "bytecode and caches beside mounted inputs and in the image")
def test_no_cache_can_be_poisoned(found: Found) -> None:
    assert found["mount-bytecode"] in {"EROFS", "EACCES"}
    assert found["environment"]["PYTHONDONTWRITEBYTECODE"] == "1"
    assert found["environment"]["HOME"] in OURS
    assert [folder for folder in found["created"] if "python" in folder or "evolvarium" in folder] == []


@pytest.mark.probe("R10", "fill every tmpfs with bytes, then with files, folders and links")
def test_space_and_names_end_at_the_policys_limits(
    survey: Callable[..., Found], policy: Policy, expected: Found
) -> None:
    limits = policy.purposes[Purpose.ANALYSIS].limits
    places = survey("space", ROOF_BYTES=4 * limits.tmpfs_bytes, ROOF_FILES=4 * limits.tmpfs_inodes)["places"]
    places = dict(places)
    assert {place["ending"] for place in places.values()} == {"ENOSPC"}
    if expected["inode-limit"]:
        assert {place["files-ending"] for place in places.values()} == {"ENOSPC"}
        assert sum(place["files"] for name, place in places.items() if name in GIVEN) <= limits.tmpfs_inodes
    shared = places.pop("/dev/shm")  # noqa: S108 - in the container
    assert sum(place["bytes"] for place in places.values()) <= limits.tmpfs_bytes
    assert shared["bytes"] <= 1 << 20


@pytest.mark.probe("R19", "growth in the kernel: names, sockets and descriptors without end")
def test_kernel_objects_are_bounded(survey: Callable[..., Found], policy: Policy) -> None:
    limits = policy.purposes[Purpose.ANALYSIS].limits
    found = survey("space", ROOF_BYTES=4 * limits.tmpfs_bytes, ROOF_FILES=4 * limits.tmpfs_inodes)
    assert found["descriptors-ending"] == "EMFILE"
    assert found["descriptors"] <= OPEN_FILES
    assert found["raise-nofile"] != "allowed"


@pytest.mark.probe("R3", "locked memory, huge pages, and 200 MB in /dev/shm")
def test_memory_in_disguise_is_bounded(survey: Callable[..., Found], policy: Policy, expected: Found) -> None:
    limits = policy.purposes[Purpose.ANALYSIS].limits
    found = survey("space", ROOF_BYTES=4 * limits.tmpfs_bytes, ROOF_FILES=4 * limits.tmpfs_inodes)
    tried = {name: found[name] for name in ("locked", "huge", "mlockall", "raise-memlock")}
    assert {name for name, answer in tried.items() if answer == "allowed"} <= expected["guest-memory"], tried
    assert found["places"]["/dev/shm"]["ending"] == "ENOSPC"  # noqa: S108 - in the container
