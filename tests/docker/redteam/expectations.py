"""Where runtimes differ: the one table of what each of them answers.

`runsc` (gVisor) has a kernel of its own in user space. A call that it allows acts on that kernel, inside the container,
and never reaches the host's; nor does it apply the engine's seccomp profile to the code inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Runtime

REFUSED = frozenset({"EPERM", "ENOSYS"})
"""What a refused system call answers; anything else means that a kernel looked at its arguments."""

_NO_SOCKET = REFUSED | {"EACCES"}
RUNTIMES: Mapping[Runtime, Mapping[str, Any]] = {
    Runtime.RUNC: {
        "guest-calls": frozenset(),
        "foreign-calls": REFUSED | {"signal 31", "signal 11"},
        "guest-sockets": frozenset(),
        "guest-devices": frozenset(),
        "guest-writes": frozenset(),
        "guest-memory": frozenset(),
        "no-socket": _NO_SOCKET,
        "no-new-privileges": "1",
        "seccomp": "2",
        "mount-flags": frozenset({"nosuid", "nodev", "noexec"}),
        "inode-limit": True,
        "sequences": 100,
        "bomb-endings": frozenset({Ending.PROCESSES}),
        "bomb-seconds": 2.0,
        "cpu-is-counted": True,
        "undumpable": True,
    },
    Runtime.RUNSC: {
        "guest-calls": frozenset({
            *("unshare-user", "unshare-mount", "unshare-pid", "unshare-cgroup", "unshare-net", "unshare-ipc"),
            *("unshare-uts", "clone-user", "clone-mount", "clone-pid", "clone-cgroup", "clone-net", "clone-ipc"),
            *("clone-uts", "setns", "add_key", "request_key", "keyctl", "perf_event_open", "io_uring_setup"),
            *("io_uring_enter", "ptrace-traceme", "shmget", "semget", "msgget", "mq_open"),
            *("open_by_handle_at", "name_to_handle_at", "syslog", "personality", "seccomp", "memfd_create"),
            *("execveat", "splice", "tee", "mbind", "set_mempolicy", "mknodat-block", "mknodat-character"),
        }),
        "foreign-calls": REFUSED | {"EINVAL", "EBADF"},  # none of the other tables exists in the guest
        "guest-sockets": frozenset({"socket-netlink-route", "socket-netlink-uevent", "socket-ping", "socket-ping-6"}),
        "guest-devices": frozenset({"/dev/fuse", "/dev/net/tun"}),
        "guest-writes": frozenset({
            "write /dev/fuse", "write /dev/net/tun", "write /proc/1/oom_score_adj", "write /proc/self/oom_score_adj",
        }),
        "guest-memory": frozenset({"huge"}),  # a flag without effect; the pages are ordinary ones, and charged
        "no-socket": _NO_SOCKET | {"EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EINVAL"},
        "no-new-privileges": None,
        "seccomp": "0",
        "mount-flags": frozenset({"noexec"}),  # the guest shows no other flag; F10 tries what they are for
        "bomb-endings": frozenset({Ending.PROCESSES, Ending.TIMEOUT, Ending.MEMORY}),
        "bomb-seconds": 2.0,
        "cpu-is-counted": True,
        "undumpable": False,  # processes of one user see each other, whatever they say; the filter of calls holds
        "sequences": 10,  # a hundred copies of a program need more tasks and memory of the host than the policy grants
        "inode-limit": False,  # files are bounded by memory alone, so `tmpfs` stays unproven there
    },
}  # fmt: skip
