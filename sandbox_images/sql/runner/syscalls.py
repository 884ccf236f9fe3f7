"""The system calls that are left to a process once its database is open: to read, compute, answer and end.

A filter of its own (seccomp(2), mode filter) below the container's: no process can be made, no program started, nothing
opened, signalled, connected or looked up, whatever a query does to the process that runs it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
_LIBC = ctypes.CDLL(None, use_errno=True)

_CALLS = {
    "x86_64": (0xC000003E, {
        "read": 0, "write": 1, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "lseek": 8, "mmap": 9, "mprotect": 10,
        "munmap": 11, "brk": 12, "rt_sigreturn": 15, "pread64": 17, "access": 21, "sched_yield": 24, "mremap": 25,
        "madvise": 28, "nanosleep": 35, "getpid": 39, "exit": 60, "fcntl": 72, "gettimeofday": 96, "getrusage": 98,
        "getuid": 102, "geteuid": 107, "time": 201, "futex": 202, "restart_syscall": 219, "clock_gettime": 228,
        "clock_nanosleep": 230, "exit_group": 231, "newfstatat": 262, "faccessat": 269, "statx": 332, "rseq": 334,
    }),
    "aarch64": (0xC00000B7, {
        "fcntl": 25, "faccessat": 48, "close": 57, "lseek": 62, "read": 63, "write": 64, "pread64": 67,
        "newfstatat": 79, "fstat": 80, "exit": 93, "exit_group": 94, "futex": 98, "nanosleep": 101,
        "clock_gettime": 113, "clock_nanosleep": 115, "sched_yield": 124, "restart_syscall": 128, "rt_sigreturn": 139,
        "getrusage": 165, "gettimeofday": 169, "getpid": 172, "getuid": 174, "geteuid": 175, "brk": 214, "munmap": 215,
        "mremap": 216, "mmap": 222, "mprotect": 226, "madvise": 233, "statx": 291, "rseq": 293,
    }),
}  # fmt: skip
"""Machine to (the kernel's constant for it, name to number of each call that is allowed)."""

# Classic BPF (linux/filter.h): load a word of struct seccomp_data; jump if equal; return.
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER_OFFSET, _MACHINE_OFFSET = 0, 4
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_INSTRUCTION = struct.Struct("HBBI")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def program(machine: str) -> bytes:
    """The filter's instructions.

    Raises:
        OSError: The system calls of this machine are not known here.
    """
    if machine not in _CALLS:
        raise OSError(errno.ENOSYS, f"no filter of system calls for {machine}")
    constant, calls = _CALLS[machine]
    numbers = sorted(calls.values())
    lines = [
        (_LOAD, 0, 0, _MACHINE_OFFSET),
        (_JUMP_IF_EQUAL, 1, 0, constant),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, _NUMBER_OFFSET),
        *((_JUMP_IF_EQUAL, len(numbers) - place, 0, number) for place, number in enumerate(numbers)),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(_INSTRUCTION.pack(*line) for line in lines)


_INSTRUCTIONS = program(platform.machine())


_FILTER = _Program(len(_INSTRUCTIONS) // _INSTRUCTION.size, _INSTRUCTIONS)
_FILTER_ADDRESS = ctypes.c_ulong(ctypes.addressof(_FILTER))
_ZERO, _ONE, _FILTER_MODE = ctypes.c_ulong(0), ctypes.c_ulong(1), ctypes.c_ulong(_MODE_FILTER)


def forbid_the_rest() -> None:
    """Refuse every call that is not in the list, from now on and for ever.

    Raises:
        OSError: The kernel cannot filter; this process must not run anything untrusted.
    """
    _prctl(_PR_SET_NO_NEW_PRIVS, _ONE, _ZERO)
    _prctl(_PR_SET_SECCOMP, _FILTER_MODE, _FILTER_ADDRESS)


def _prctl(option: int, first: ctypes.c_ulong, second: ctypes.c_ulong) -> None:
    if _LIBC.prctl(option, first, second, _ZERO, _ZERO) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {option}: {os.strerror(number)}")
