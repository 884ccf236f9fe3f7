"""The one function that seals a container, read without an engine; ids of the threat catalogue are in the names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.policies import MIB, Grant, Limits, MountRole, Purpose, Runtime
from orchestrator.errors import PolicyError
from orchestrator.ports import SessionRequest
from orchestrator.sandbox.settings import Blueprint, container_settings, granted_limits, seccomp_profile

UID = 1_500_000
MOUNTS = {
    Purpose.CANDIDATE: frozenset[MountRole](),
    Purpose.ANALYSIS: frozenset({MountRole.PUBLIC}),
    Purpose.EVALUATOR: frozenset({MountRole.TASK}),
    Purpose.IMPORT: frozenset({MountRole.TARGET}),
    Purpose.SQL: frozenset({MountRole.DATABASE}),
    Purpose.DERIVE: frozenset[MountRole](),
    Purpose.TOOL: frozenset({MountRole.DATABASE}),
}
PURPOSES = pytest.mark.parametrize("purpose", list(Purpose))

MEMORY_FILES = "/dev/shm"  # noqa: S108 - a path inside the container
FORBIDDEN = [
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "ptrace",
    "memfd_secret",
    "modify_ldt",
    "shmget",
    "shmat",
    "shmctl",
    "shmdt",
    "semget",
    "semop",
    "semctl",
    "semtimedop",
    "msgget",
    "msgsnd",
    "msgrcv",
    "msgctl",
    "mq_open",
    "mq_unlink",
    "keyctl",
    "add_key",
    "request_key",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "unshare",
    "setns",
    "mount",
    "umount",
    "umount2",
    "pivot_root",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "open_tree",
    "move_mount",
    "mount_setattr",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "kcmp",
    "pidfd_getfd",
    "pidfd_open",
    "open_by_handle_at",
    "name_to_handle_at",
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "quotactl",
    "lookup_dcookie",
    "iopl",
    "ioperm",
    "fanotify_init",
    "fanotify_mark",
    "clock_settime",
    "clock_adjtime",
    "settimeofday",
    "syslog",
    "seccomp",
    "setuid",
    "setgid",
    "setgroups",
    "setresuid",
    "mknod",
    "mknodat",
    "chroot",
    "vhangup",
    "memfd_create",
    "execveat",
    "vmsplice",
    "splice",
    "tee",
    "landlock_create_ruleset",
    "nfsservctl",
    "uselib",
    "remap_file_pages",
    "migrate_pages",
    "move_pages",
]

limits = st.builds(
    Limits,
    wall_seconds=st.floats(1, 3600),
    cpus=st.floats(0.01, 64),
    memory_bytes=st.integers(16 * MIB, 64 << 30),
    pids=st.integers(4, 4096),
    tmpfs_bytes=st.integers(MIB, 8 << 30),
    tmpfs_inodes=st.integers(16, 1 << 20),
)


def settings_of(purpose: Purpose, limits: Limits | None = None, runtime: Runtime = Runtime.RUNC) -> dict[str, Any]:
    grant = Grant(image="python", runtime=runtime, mounts=MOUNTS[purpose], limits=limits or Limits())
    blueprint = Blueprint(
        purpose=purpose,
        run_id="run-1",
        image_digest="sha256:" + "1" * 64,
        grant=grant,
        limits=grant.limits,
        volumes={role: f"volume-{role.value}" for role in grant.mounts},
    )
    return container_settings(blueprint, name="evolvarium-x", uid=UID, labels={"evolvarium.run": "run-1"})


def host_of(purpose: Purpose, limits: Limits | None = None) -> dict[str, Any]:
    host: dict[str, Any] = settings_of(purpose, limits)["HostConfig"]
    return host


def options(text: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in text.split(","))


@PURPOSES
def test_n1_no_purpose_gets_a_network(purpose: Purpose) -> None:
    settings = settings_of(purpose)
    assert settings["NetworkDisabled"] is True
    assert settings["HostConfig"]["NetworkMode"] == "none"
    assert settings["HostConfig"]["ExtraHosts"] == []
    assert not {"ExposedPorts", "NetworkingConfig", "PortBindings", "Links"} & {*settings, *settings["HostConfig"]}


@PURPOSES
def test_n2_the_resolver_of_the_host_is_overwritten_and_masked(purpose: Purpose) -> None:
    assert host_of(purpose)["Dns"] == ["127.0.0.1"]
    assert "/etc/resolv.conf" in host_of(purpose)["MaskedPaths"]


@PURPOSES
def test_p1_every_capability_is_dropped_and_none_is_added(purpose: Purpose) -> None:
    assert host_of(purpose)["CapDrop"] == ["ALL"]
    assert host_of(purpose)["CapAdd"] == []
    assert host_of(purpose)["Privileged"] is False


@PURPOSES
def test_p2_new_privileges_are_refused_and_our_own_seccomp_profile_is_in_force(purpose: Purpose) -> None:
    assert host_of(purpose)["SecurityOpt"] == ["no-new-privileges:true", f"seccomp={seccomp_profile()}"]


@PURPOSES
def test_p3_no_container_runs_as_root(purpose: Purpose) -> None:
    assert settings_of(purpose)["User"] == f"{UID}:{UID}"
    assert host_of(purpose)["GroupAdd"] == []


@PURPOSES
def test_f1_the_root_is_read_only(purpose: Purpose) -> None:
    assert host_of(purpose)["ReadonlyRootfs"] is True


@PURPOSES
def test_f2_only_an_import_has_a_writable_mount(purpose: Purpose) -> None:
    writable = [mount["Target"] for mount in host_of(purpose)["Mounts"] if not mount["ReadOnly"]]
    assert writable == (["/target"] if purpose is Purpose.IMPORT else [])


@PURPOSES
def test_e4_every_mount_is_a_named_volume_and_never_a_host_path(purpose: Purpose) -> None:
    host = host_of(purpose)
    assert host["Binds"] == []
    assert host["VolumesFrom"] == []
    assert all(mount["Type"] == "volume" and "/" not in mount["Source"] for mount in host["Mounts"])
    assert not any("docker.sock" in json.dumps(mount) for mount in host["Mounts"])


@PURPOSES
def test_e3_no_namespace_is_shared(purpose: Purpose) -> None:
    host = host_of(purpose)
    assert (host["IpcMode"], host["CgroupnsMode"]) == ("none", "private")
    assert (host["PidMode"], host["UTSMode"], host["UsernsMode"]) == ("", "", "")


@PURPOSES
def test_e2_no_device_is_given(purpose: Purpose) -> None:
    host = host_of(purpose)
    assert host["Devices"] == host["DeviceRequests"] == host["DeviceCgroupRules"] == []


@PURPOSES
def test_e14_a_container_is_neither_restarted_nor_removed_by_the_engine(purpose: Purpose) -> None:
    assert host_of(purpose)["RestartPolicy"] == {"Name": "no"}
    assert host_of(purpose)["AutoRemove"] is False


@PURPOSES
def test_r11_nothing_that_is_printed_reaches_the_disk_of_the_host(purpose: Purpose) -> None:
    assert host_of(purpose)["LogConfig"] == {"Type": "none", "Config": {}}


@PURPOSES
def test_r14_core_dumps_are_off(purpose: Purpose) -> None:
    assert {"Name": "core", "Soft": 0, "Hard": 0} in host_of(purpose)["Ulimits"]


@PURPOSES
def test_limits_per_user_are_not_relied_on(purpose: Purpose) -> None:
    assert "nproc" not in {limit["Name"] for limit in host_of(purpose)["Ulimits"]}


@PURPOSES
def test_s4_environment_and_host_name_are_fixed_and_name_nothing(purpose: Purpose) -> None:
    settings = settings_of(purpose)
    assert settings["Hostname"] == "sandbox"
    assert "HOME=/tmp" in settings["Env"]
    assert "PYTHONHASHSEED=0" in settings["Env"]
    assert "run-1" not in json.dumps({**settings, "Labels": {}})


@PURPOSES
def test_x3_python_writes_no_bytecode_and_uses_one_thread(purpose: Purpose) -> None:
    env = settings_of(purpose)["Env"]
    assert "PYTHONDONTWRITEBYTECODE=1" in env
    assert "OPENBLAS_NUM_THREADS=1" in env
    assert "OMP_NUM_THREADS=1" in env


@PURPOSES
def test_the_runner_meets_the_end_of_its_input_when_we_are_gone(purpose: Purpose) -> None:
    settings = settings_of(purpose)
    assert settings["OpenStdin"]
    assert settings["StdinOnce"]
    assert not settings["Tty"]


@PURPOSES
def test_x5_the_image_is_named_by_digest_alone(purpose: Purpose) -> None:
    assert settings_of(purpose)["Image"] == "sha256:" + "1" * 64


@given(limits)
def test_every_limit_of_the_policy_arrives_in_the_settings(limits: Limits) -> None:
    host = host_of(Purpose.CANDIDATE, limits)
    assert host["Memory"] == host["MemorySwap"] == limits.memory_bytes
    assert host["PidsLimit"] == limits.pids
    assert host["NanoCpus"] == pytest.approx(limits.cpus * 1e9)


@given(limits)
def test_a_guest_kernels_own_tasks_do_not_use_up_the_processes_of_the_policy(limits: Limits) -> None:
    own, per_process = 38, 5.2  # gVisor's, measured
    allowed = settings_of(Purpose.CANDIDATE, limits, Runtime.RUNSC)["HostConfig"]["PidsLimit"]
    assert 0.9 * limits.pids - 1 < (allowed - own) / per_process <= limits.pids + 1


@given(limits, st.sampled_from(list(Purpose)))
def test_r10_all_writable_places_together_keep_to_the_limits_on_files(limits: Limits, purpose: Purpose) -> None:
    tmpfs = dict(host_of(purpose, limits)["Tmpfs"])
    shared = options(tmpfs.pop(MEMORY_FILES))
    assert int(shared["size"]) <= MIB
    assert int(shared["nr_inodes"]) <= 64
    assert sum(int(options(text)["size"]) for text in tmpfs.values()) <= limits.tmpfs_bytes
    assert sum(int(options(text)["nr_inodes"]) for text in tmpfs.values()) <= max(limits.tmpfs_inodes, 16)


@PURPOSES
def test_f10_every_writable_place_is_nosuid_nodev_noexec_and_belongs_to_the_container_alone(purpose: Purpose) -> None:
    for text in host_of(purpose)["Tmpfs"].values():
        assert {"nosuid", "nodev", "noexec"} <= set(text.split(","))
        assert options(text)["mode"] == "0700"
        assert options(text)["uid"] == str(UID)


def test_the_engines_own_masks_are_kept() -> None:
    host = host_of(Purpose.CANDIDATE)
    assert {"/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"} <= set(host["MaskedPaths"])
    assert {"/proc/sys", "/proc/sysrq-trigger", "/proc/bus"} <= set(host["ReadonlyPaths"])
    assert {"/proc/loadavg", "/proc/meminfo", "/proc/uptime"} <= set(host["MaskedPaths"])


def test_an_absent_limit_in_a_request_means_the_policys() -> None:
    grant = Grant(image="python", limits=Limits(pids=9))
    request = SessionRequest(purpose=Purpose.CANDIDATE, run_id="r", attempt_id="a")
    assert granted_limits(grant, request) == grant.limits


@pytest.mark.parametrize("name", sorted(Limits.model_fields))
def test_no_limit_of_a_request_can_be_over_the_policys(name: str) -> None:
    low = Limits(
        wall_seconds=1,
        idle_seconds=1,
        cpu_seconds=1,
        load_cpu_seconds=1,
        cpus=0.5,
        memory_bytes=16 * MIB,
        pids=4,
        tmpfs_bytes=MIB,
        tmpfs_inodes=16,
        output_bytes=0,
        output_kill_bytes=0,
        frame_head_bytes=1024,
        frame_body_bytes=0,
        channel_bytes=1024,
    )
    raised = low.model_copy(update={name: getattr(low, name) + 1})
    request = SessionRequest(purpose=Purpose.CANDIDATE, run_id="r", attempt_id="a", limits=raised)
    with pytest.raises(PolicyError, match=name):
        granted_limits(Grant(image="python", limits=low), request)


@given(limits, st.sampled_from(list(Runtime)), st.sampled_from(list(Purpose)))
def test_r20_no_ceiling_comes_to_what_the_engine_takes_for_none(
    limits: Limits, runtime: Runtime, purpose: Purpose
) -> None:
    host = settings_of(purpose, limits, runtime)["HostConfig"]
    assert all(host[ceiling] > 0 for ceiling in ("Memory", "MemorySwap", "PidsLimit", "NanoCpus", "ShmSize"))
    for mount in host["Tmpfs"].values():
        assert int(options(mount)["size"]) > 0
        assert int(options(mount)["nr_inodes"]) > 0
    assert all(limit["Soft"] >= 0 and limit["Hard"] >= 0 for limit in host["Ulimits"])


@pytest.mark.parametrize("name", ["cpus", "memory_bytes", "pids", "tmpfs_bytes"])
@pytest.mark.parametrize("value", [0, -1, 1e-10])
def test_r20_a_ceiling_that_comes_to_none_is_refused_however_it_got_there(name: str, value: float) -> None:
    unchecked = Limits().model_copy(update={name: value if name == "cpus" else int(value)})
    with pytest.raises(PolicyError, match=f"the limit {name} comes to"):
        settings_of(Purpose.CANDIDATE, unchecked)


def test_a_mount_that_is_not_granted_is_refused() -> None:
    request = SessionRequest(
        purpose=Purpose.EVALUATOR, run_id="r", attempt_id="a", mounts={MountRole.TASK: "sha256:" + "0" * 64}
    )
    with pytest.raises(PolicyError, match="task"):
        granted_limits(Grant(image="evaluator"), request)


def allowed_calls() -> set[str]:
    profile = json.loads(seccomp_profile())
    return {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}


def test_the_seccomp_profile_refuses_by_default_and_knows_no_foreign_architecture() -> None:
    profile = json.loads(seccomp_profile())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert [(entry["architecture"], entry["subArchitectures"]) for entry in profile["archMap"]] == [
        ("SCMP_ARCH_X86_64", []),
        ("SCMP_ARCH_AARCH64", []),
    ]


@pytest.mark.parametrize(
    "call",
    FORBIDDEN,
)
def test_k_the_seccomp_profile_does_not_allow(call: str) -> None:
    assert call not in allowed_calls()


def test_clone3_answers_enosys_so_that_the_c_library_falls_back() -> None:
    rules = [rule for rule in json.loads(seccomp_profile())["syscalls"] if "clone3" in rule["names"]]
    assert [(rule["action"], rule["errnoRet"]) for rule in rules] == [("SCMP_ACT_ERRNO", 38)]


def test_k1_clone_is_allowed_only_without_a_new_namespace() -> None:
    (rule,) = [rule for rule in json.loads(seccomp_profile())["syscalls"] if "clone" in rule["names"]]
    namespaces = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
    assert rule["args"] == [{"index": 0, "value": namespaces, "op": "SCMP_CMP_MASKED_EQ", "valueTwo": 0}]


def test_n5_n7_sockets_are_unix_or_plain_internet_ones() -> None:
    rules = [rule for rule in json.loads(seccomp_profile())["syscalls"] if "socket" in rule["names"]]
    assert {rule["args"][0]["value"] for rule in rules} == {1, 2, 10}
    assert all(rule["args"][0]["op"] == "SCMP_CMP_EQ" for rule in rules)
    internet = [rule for rule in rules if rule["args"][0]["value"] != 1]
    assert {(rule["args"][1]["valueTwo"], rule["args"][2]["value"]) for rule in internet} == {
        (1, 0),
        (1, 6),
        (2, 0),
        (2, 17),
    }
