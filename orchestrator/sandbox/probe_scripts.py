"""What the probes run inside a container, and the limits they run under. Each script tries to exceed one limit."""

from __future__ import annotations

from orchestrator.domain.policies import MIB, Limits

LIMITS = Limits(
    wall_seconds=30,
    idle_seconds=60,
    cpu_seconds=30,
    cpus=0.5,
    memory_bytes=256 * MIB,
    pids=96,
    tmpfs_bytes=8 * MIB,
    tmpfs_inodes=128,
    output_bytes=65536,
    channel_bytes=4 * MIB,
)
ROOMY = LIMITS.model_copy(update={"pids": 256})
"""For probes that need processes of their own; gVisor takes several of the host's for each of the container's."""
CROWDED = LIMITS.model_copy(update={"pids": 32, "memory_bytes": 512 * MIB})
"""For the probe that starts processes until it is refused.

Under gVisor 32 of them take 300 MiB, and a container that meets the limit with a hundred can take a minute to end.
"""
_BURN_SECONDS = 3.0

MEMORY_SCRIPT = f"""
taken = []
for step in range({3 * LIMITS.memory_bytes // (16 * MIB)}):
    taken.append(b"x" * {16 * MIB})
    print(16 * len(taken), flush=True)
"""
PIDS_SCRIPT = f"""
import os, signal, time
children = []
try:
    while len(children) < {CROWDED.pids + 16}:
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        children.append(child)
except OSError:
    pass
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
print(len(children))
"""
CPU_SCRIPT = f"""
import os, time
end = time.monotonic() + {_BURN_SECONDS}
children = [os.fork() for _ in range(3)]  # three forks by everyone: eight busy processes
while time.monotonic() < end:
    pass
if 0 in children:
    os._exit(0)
print(8)
"""
NETWORK_SCRIPT = """
import errno, socket
for name, family, kind, address in [
    ("TCP", socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 9)),
    ("link-local TCP", socket.AF_INET, socket.SOCK_STREAM, ("169.254.169.254", 80)),
    ("UDP", socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53)),
    ("IPv6", socket.AF_INET6, socket.SOCK_STREAM, ("2001:db8::1", 9)),
    ("VSOCK", 40, socket.SOCK_STREAM, (2, 9)),
]:
    try:
        with socket.socket(family, kind) as connection:
            connection.settimeout(1)
            connection.connect(address)
            connection.send(b"x")
        print("a connection over", name)
    except TimeoutError:
        print("a route for", name)
    except OSError as error:
        if error.errno in (errno.ECONNREFUSED, errno.ECONNRESET):
            print("a peer over", name)
try:
    with open("/proc/net/dev") as table:
        for line in table.readlines()[2:]:
            name = line.split(":")[0].strip()
            if name not in ("lo", "tunl0", "sit0", "ip6tnl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0"):
                print("the interface", name)
except OSError:
    pass
print("end")
"""
TMPFS_SCRIPT = f"""
import os
written = files = 0
places = [place for place in ("/tmp", "/work", "/dev/shm") if os.path.isdir(place)]
for place in places:
    try:
        with open(place + "/fill", "wb", buffering=0) as handle:
            while written < {4 * LIMITS.tmpfs_bytes}:
                written += handle.write(bytes(65536))
    except OSError:
        pass
    try:
        os.unlink(place + "/fill")
    except OSError:
        pass
for place in places:
    try:
        while files < {4 * LIMITS.tmpfs_inodes}:
            os.close(os.open(f"{{place}}/{{files}}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            files += 1
    except OSError:
        pass
print(written, files)
"""
READ_ONLY_SCRIPT = """
import os
ours = ("/tmp", "/work", "/dev/shm")
for root, names, files in os.walk("/"):
    names[:] = [name for name in names if os.path.join(root, name) not in (*ours, "/proc")]
    if root.count("/") > 4:
        names[:] = []
    probe = os.path.join(root, "evolvarium-probe")
    try:
        os.close(os.open(probe, os.O_CREAT | os.O_WRONLY))
        print("a file in", root)
    except OSError:
        pass
for path in ("/etc/passwd", "/opt/evolvarium/runner/__main__.py", "/proc/sys/kernel/core_pattern", "/usr/bin/python3"):
    try:
        os.close(os.open(path, os.O_WRONLY))
        print("the file", path)
    except OSError:
        pass
print("end")
"""
KILL_SCRIPT = """
import os, signal, time
for number in range(1, signal.NSIG):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        break
while True:
    time.sleep(1000)
"""
