"""Read back from inside: the settings are in force, and what honest code needs works under them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Policy, Purpose
from orchestrator.sandbox.settings import ENVIRONMENT, HOSTNAME, MASKED_PATHS, SHM_BYTES

pytestmark = pytest.mark.docker

Run = Callable[..., Any]


@pytest.fixture
def seen(analyse: Run) -> Callable[[str], Any]:
    """What a script, as an expression of JSON values, sees inside."""

    def look(expression: str, prelude: str = "") -> Any:
        ended = analyse(f"import json, os, re\n{prelude}\nprint(json.dumps({expression}))\n")
        assert ended.ending is Ending.OK, ended.printed
        return json.loads(ended.printed)

    return look


HONEST = {
    "numpy": "import numpy as np\nprint(np.linalg.svd(np.eye(50))[1].sum())",
    "scipy": "import scipy.optimize as so\nprint(so.minimize(lambda x: (x[0] - 2) ** 2, [0.0]).x.round(3)[0] + 48)",
    "processes": "import multiprocessing as mp\nprint(sum(mp.get_context('fork').Pool(3).map(abs, [-20, -30.0])))",
    "threads": (
        "from concurrent.futures import ThreadPoolExecutor as P\n"
        "with P(4) as pool:\n    print(sum(pool.map(float, range(5))) + 40)"
    ),
    "a subprocess": (
        "import subprocess, sys\n"
        "print(subprocess.run([sys.executable, '-c', 'print(50.0)'], capture_output=True, text=True).stdout)"
    ),
    "temporary files": (
        "import pathlib, shutil, tempfile\nfolder = pathlib.Path(tempfile.mkdtemp())\n"
        "(folder / 'a').write_text('50.0')\nshutil.copy2(folder / 'a', folder / 'b')\nprint((folder / 'b').read_text())"
    ),
    "asyncio": "import asyncio\nprint(asyncio.run(asyncio.sleep(0.01, 50.0)))",
    "n4 its own loopback": (
        "import socket\nserver = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(server.getsockname()).sendall(b'50.0')\nprint(server.accept()[0].recv(9).decode())"
    ),
}


@pytest.mark.parametrize("script", HONEST.values(), ids=HONEST)
def test_what_honest_code_needs_works(analyse: Run, script: str) -> None:
    ended = analyse(script)
    assert (ended.ending, float(ended.printed)) == (Ending.OK, 50.0)


def test_s4_the_environment_is_fixed(seen: Run) -> None:
    fixed = {**ENVIRONMENT, "HOSTNAME": HOSTNAME}
    inside = seen("dict(os.environ)")
    assert {name: inside.get(name) for name in fixed} == fixed
    assert set(inside) - set(fixed) <= {"LC_CTYPE"}


def test_p1_p2_no_capability_no_new_privileges_and_a_filter(seen: Run) -> None:
    status = dict(line.split(":\t") for line in seen("open('/proc/self/status').read().splitlines()") if ":\t" in line)
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_p3_every_container_has_a_uid_of_its_own(seen: Run) -> None:
    first, second = (seen("[*os.getresuid(), *os.getresgid()]") for _ in range(2))
    assert len(set(first)) == len(set(second)) == 1
    assert min(first) > 1 << 20
    assert first != second


def test_n1_there_is_only_a_loopback_and_the_internet_is_unreachable_at_once(seen: Run) -> None:
    prelude = (
        "import socket\ndef dial(host):\n    try:\n        socket.create_connection((host, 80), 5)\n"
        "    except OSError as error:\n        return error.strerror\n"
    )
    hosts = "[dial(host) for host in ('1.1.1.1', '169.254.169.254', '172.17.0.1')]"
    assert seen(hosts, prelude) == ["Network is unreachable"] * 3
    assert seen("re.findall(r'^ *(\\w+):', open('/proc/net/dev').read(), re.M)") == ["lo"]


def test_n2_nothing_tells_of_the_hosts_resolver(seen: Run) -> None:
    assert seen("open('/etc/resolv.conf').read() if os.path.exists('/etc/resolv.conf') else ''") == ""


def test_what_tells_of_the_hosts_load_is_masked(seen: Run) -> None:
    masked = [path for path in MASKED_PATHS if path.startswith(("/proc", "/sys"))]
    script = (
        "def content(path):\n    if not os.path.exists(path):\n        return ''\n"
        "    return os.listdir(path) if os.path.isdir(path) else open(path).read()\n"
    )
    found = seen(f"{{path: content(path) for path in {masked!r}}}", script)
    assert {path: content for path, content in found.items() if content} == {}


def test_f1_f10_only_three_tmpfs_are_writable_and_they_are_nosuid_nodev_noexec(seen: Run, policy: Policy) -> None:
    walk = (
        "def writable():\n    for folder, folders, _ in os.walk('/'):\n"
        "        folders[:] = [] if folder.startswith(('/proc', '/sys')) else folders\n"
        "        if os.access(folder, os.W_OK):\n            yield folder\n"
        "mounts = {line.split()[1]: line.split()[3].split(',') for line in open('/proc/mounts')}\n"
    )
    folders, mounts = seen("[list(writable()), mounts]", walk)
    assert {"/" + folder.split("/")[1] for folder in folders} <= {"/tmp", "/work", "/dev"}  # noqa: S108 - inside
    assert {folder for folder in folders if folder.startswith("/dev")} == {"/dev/shm"}  # noqa: S108 - inside
    for place in ("/tmp", "/work", "/dev/shm"):  # noqa: S108 - inside
        assert {"nosuid", "nodev", "noexec"} <= set(mounts[place])
    assert "ro" in mounts["/"]
    assert f"size={SHM_BYTES // 1024}k" in mounts["/dev/shm"]  # noqa: S108 - inside
    half = policy.purposes[Purpose.ANALYSIS].limits.tmpfs_bytes // 2
    assert f"size={half // 1024}k" in mounts["/work"]


def test_r14_there_are_no_core_dumps_and_no_limits_that_can_be_raised(seen: Run) -> None:
    limits = seen(
        "[resource.getrlimit(n) for n in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE)]",
        "import resource\nresource.RLIMIT_MSGQUEUE = 12",
    )
    assert limits == [[0, 0]] * 3


def test_no_namespace_is_the_hosts(seen: Run) -> None:
    names = ("cgroup", "ipc", "mnt", "net", "pid", "uts")
    inside = seen(f"{{name: os.readlink('/proc/self/ns/' + name) for name in {names!r}}}")
    assert {name for name in names if inside[name] == str(Path(f"/proc/self/ns/{name}").readlink())} == set()


def test_s3_no_descriptor_of_the_host_is_inherited(seen: Run) -> None:
    links = seen("{n: os.readlink('/proc/self/fd/' + n) for n in os.listdir('/proc/self/fd') if int(n) < 3}")
    assert all(link == "/dev/null" or link.startswith("pipe:") for link in links.values())
