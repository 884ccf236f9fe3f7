"""K: system calls that nobody here needs; each is refused before a kernel looks at its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from expectations import REFUSED

pytestmark = pytest.mark.docker

GROUPS = [
    ("K1", "new namespaces by unshare, clone and clone3", "unshare- clone- clone3 setns"),
    (
        "K2",
        "mounts: mount, umount2, pivot_root, chroot and the file-descriptor API",
        (
            "mount mount- umount2 pivot_root chroot fsopen fsconfig fsmount fspick open_tree move_mount mount_setattr"
            " statmount listmount"
        ),
    ),
    ("K3", "key rings", "add_key request_key keyctl"),
    ("K4", "bpf, perf_event_open, userfaultfd", "bpf perf_event_open userfaultfd"),
    ("K5", "io_uring", "io_uring_setup io_uring_enter io_uring_register"),
    ("K6", "ptrace of itself and of its parent", "ptrace-"),
    (
        "K7",
        "other processes' memory and descriptors",
        "process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp",
    ),
    (
        "K8",
        "pidfd_open, memfd_secret, landlock, modify_ldt, System V IPC, POSIX queues",
        "pidfd_open memfd_secret landlock_create_ruleset modify_ldt shmget semget msgget mq_open",
    ),
    (
        "K9",
        "kexec, modules, reboot, swap, accounting",
        "kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct",
    ),
    ("K10", "open_by_handle_at (Shocker)", "open_by_handle_at name_to_handle_at"),
    (
        "K11",
        "quotas, ports, fanotify, clocks, kernel log, host name, personality",
        (
            "quotactl lookup_dcookie iopl ioperm fanotify_init clock_settime clock_adjtime settimeofday adjtimex syslog"
            " sethostname setdomainname personality vhangup seccomp uselib"
        ),
    ),
    ("K13", "fileless execution by memfd_create and execveat", "memfd_create execveat"),
    (
        "K14",
        "page games: splice, vmsplice, tee, remap_file_pages, memory policies",
        "splice vmsplice tee remap_file_pages move_pages migrate_pages mbind set_mempolicy",
    ),
    ("K15", "system calls that the profile has never heard of", "unknown-"),
]


@pytest.mark.parametrize(
    "calls", [pytest.param(calls, id=name, marks=pytest.mark.probe(name, idea)) for name, idea, calls in GROUPS]
)
def test_a_system_call_that_nobody_needs_is_refused(
    survey: Callable[..., Mapping[str, Any]], expected: Mapping[str, Any], calls: str
) -> None:
    found = survey("kernel")
    assert found["control-getpid"] == "allowed"  # the survey can tell
    wanted = calls.split()
    prefixes = tuple(name for name in wanted if name.endswith("-"))
    tried = {name: answer for name, answer in found.items() if name in wanted or name.startswith(prefixes)}
    assert len(tried) >= len(wanted)
    open_calls = {name: answer for name, answer in tried.items() if answer not in REFUSED}
    assert {name: answer for name, answer in open_calls.items() if name not in expected["guest-calls"]} == {}


@pytest.mark.probe("K16", "system calls of 32-bit programs and of the x32 ABI")
def test_the_other_system_call_tables_of_the_machine_are_closed(
    survey: Callable[..., Mapping[str, Any]], expected: Mapping[str, Any]
) -> None:
    found = survey("kernel")
    foreign = {name: answer for name, answer in found.items() if name.startswith(("i386-", "x32-"))}
    if not foreign:
        pytest.skip("this machine has one table of system calls")
    assert set(foreign.values()) <= expected["foreign-calls"], foreign
