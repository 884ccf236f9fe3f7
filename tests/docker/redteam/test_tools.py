# ruff: noqa: S608, S108 - the SQL, the paths and the programs of these tests are their own
"""T: analysis tools that mean harm: what they reach, what they leave, and what is seen of it.

They are observed, so that they run although the static screen refuses them: what stops them here is the container.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hostile_tools import OUTPUT, PAYLOAD, TABLE, WRITE, survey
from hostility import RUN

from orchestrator.domain.tool_runs import ToolFailure, ToolRun
from orchestrator.evaluation.databases import SandboxDatabase
from orchestrator.sandbox.settings import ENVIRONMENT
from tests.canary_database import CANARY, make_database

pytestmark = pytest.mark.docker

Use = Callable[..., ToolRun]
HONEST = f"""
import sqlite3
rows = sqlite3.connect("file:database.sqlite?mode=ro", uri=True).execute("SELECT sql FROM sqlite_master WHERE sql > ''")
with open("{OUTPUT}", "w") as file:
    file.write("; ".join(sorted(row[0] for row in rows)))
"""
EVASION = """
u = "_" * 2
Any = type("Any", (type,), {u + "instancecheck" + u: lambda cls, value: True})
def attribute(value, name):
    Form = Any("Form", (), {u + "match_args" + u: (name,)})
    match value:
        case Form(found):
            return found
builtins = attribute(attribute, u + "globals" + u)[u + "builtins" + u]
attribute(builtins, "ex" + "ec")(SOURCE, {u + "builtins" + u: builtins, u + "name" + u: u + "main" + u})
"""
"""Gets around the static screen, which is no boundary: from here on the container is all there is."""


def found(result: ToolRun) -> dict[str, str]:
    assert result.failure is None, (result.failure, result.detail)
    answers: dict[str, str] = json.loads(result.text or "")
    return answers


def messages(result: ToolRun) -> set[str]:
    return {finding.message for finding in result.findings}


@pytest.mark.probe("T1", "write to the database: SQL, its file, its folder, its link (F2, Q7)")
def test_a_tool_cannot_change_its_database(use: Use) -> None:
    result = use(
        survey(
            """
import sqlite3
for label, sql in {
    "update": "UPDATE person SET name = 'x'", "drop": "DROP TABLE person", "create": "CREATE TABLE t (x)",
    "wal": "PRAGMA journal_mode = WAL", "vacuum": "VACUUM", "schema": "PRAGMA user_version = 7",
}.items():
    connection = sqlite3.connect("database.sqlite", isolation_level=None)
    attempt(label, lambda: connection.execute(sql).fetchall())
real = os.path.realpath("database.sqlite")
for label, path in {"link": "database.sqlite", "file": real, "beside": "/data/x", "journal": real + "-journal"}.items():
    attempt(f"write {label}", lambda: open(path, "r+b" if "x" not in path and "-" not in path else "wb"))
attempt("chmod", os.chmod, real, 0o666)
attempt("remove", os.remove, real)
attempt("rename", os.rename, real, real + "2")
attempt("truncate", os.truncate, real, 0)
attempt("descriptor", lambda: open("/proc/self/fd/%d" % os.open(real, os.O_RDONLY), "r+b"))
os.remove("database.sqlite")
open("database.sqlite", "w").write("mine")
"""
        )
    )
    answers = found(result)
    assert {label for label, answer in answers.items() if answer == "allowed"} <= {"wal"}, answers  # it stays as it was
    assert answers["update"] == "OperationalError"
    assert result.observation is not None
    assert "UPDATE person SET name = 'x'" in result.observation.sql
    assert "w database.sqlite" in result.observation.opened
    assert "imports 'ctypes'" in messages(result)


@pytest.mark.probe("T2", "ATTACH and VACUUM INTO elsewhere; find the copy in the next run (Q1, Q3, X1)")
def test_a_copy_lies_in_the_tools_own_folder_and_goes_with_it(use: Use) -> None:
    result = use(
        survey(
            """
import sqlite3
FOUND["before"] = [place for place in ("/tmp/t2", "/dev/shm/t2", "/tmp/t2a") if os.path.exists(place)]
connection = sqlite3.connect("database.sqlite", isolation_level=None)
for place in ("/tmp/t2", "/dev/shm/t2", "/data/t2", "/opt/evolvarium/t2", "/target/t2", "/work/t2"):
    attempt(place, lambda: connection.execute("VACUUM INTO ?", (place,)))
for place in ("/tmp/t2a", "/data/t2a", "/etc/passwd", "/data/other.sqlite"):
    with sqlite3.connect("database.sqlite", isolation_level=None) as connection:
        attempt("open " + place, lambda: connection.execute("ATTACH ? AS other", (place,)))
        attempt("fill " + place, lambda: connection.execute("CREATE TABLE other.t (x)"))
"""
        )
    )
    answers = found(result)
    assert answers["before"] == []
    assert {place for place, answer in answers.items() if answer == "allowed"} <= {
        "/tmp/t2", "/dev/shm/t2", "open /tmp/t2a", "fill /tmp/t2a", "open /etc/passwd",
    }, answers  # fmt: skip
    assert result.observation is not None
    assert any(statement.startswith("ATTACH '/data/t2a'") for statement in result.observation.sql)


@pytest.mark.probe("T3", "open sockets: TCP, UDP, DNS, UNIX, VSOCK (N1, N2, N5, N8)")
def test_a_tool_reaches_nobody(use: Use) -> None:
    result = use(
        survey(
            """
import socket
for place in (("1.1.1.1", 443), ("169.254.169.254", 80), ("172.17.0.1", 2375), ("10.0.0.1", 22)):
    attempt(f"tcp {place}", lambda: socket.create_connection(place, 2))
    attempt(f"udp {place}", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", place))
attempt("dns", socket.getaddrinfo, "example.org", 443)
attempt("vsock", lambda: socket.socket(socket.AF_VSOCK).connect((2, 1024)))
for path in ("/var/run/docker.sock", "/run/containerd/containerd.sock", "\\0docker"):
    attempt(f"unix {path!r}", lambda: socket.socket(socket.AF_UNIX).connect(path))
"""
        )
    )
    answers = found(result)
    assert "allowed" not in answers.values(), answers
    assert result.observation is not None
    assert result.observation.events["socket.connect"] >= 4
    assert "imports 'socket'" in messages(result)


@pytest.mark.probe("T4", "read the environment, the command lines and the mounts (S4)")
def test_a_tools_surroundings_tell_nothing(use: Use, tool_database: SandboxDatabase) -> None:
    result = use(
        "import json, os, socket, sys\nseen = dict(os.environ), sys.argv, os.getcwd(), socket.gethostname()\n"
        f"{WRITE}(json.dumps(seen, sort_keys=True))\n"
    )
    assert result.failure is None, result.detail
    environment, arguments, folder, host = json.loads(result.text or "")
    assert set(environment) <= {*ENVIRONMENT, "HOSTNAME", "LC_CTYPE"}
    assert {name: environment[name] for name in ENVIRONMENT} == ENVIRONMENT
    assert (arguments, folder, host) == (["tools/analyze.py"], "/tmp/tool", "sandbox")
    assert RUN not in str(result.text)
    assert tool_database.digest not in str(result.text)
    assert "uses 'os.environ'" in messages(result)


@pytest.mark.probe("T8", "leave a link, a FIFO, a folder, a socket or a device as the output (F4)")
@pytest.mark.parametrize(
    "statement",
    [
        f"os.symlink('/etc/passwd', {OUTPUT!r})",
        f"os.symlink('/proc/self/environ', {OUTPUT!r})",
        "os.rmdir('tool_output'); os.symlink('/etc', 'tool_output')",
        f"os.mkfifo({OUTPUT!r})",
        f"os.mkdir({OUTPUT!r})",
        f"socket.socket(socket.AF_UNIX).bind({OUTPUT!r})",
    ],
)
def test_only_a_plain_file_is_an_output(use: Use, statement: str) -> None:
    result = use(f"import os, socket\n{statement}\n")
    if "mkfifo" in statement and result.failure is ToolFailure.ERROR:
        assert "Operation not permitted" in result.detail
    else:
        assert result.failure is ToolFailure.NO_OUTPUT, result
        assert result.detail.startswith(f"its output {OUTPUT!r} is ")
        assert "root:" not in result.detail


@pytest.mark.probe("T9", "give another output each time: time, chance, addresses")
@pytest.mark.parametrize(
    "value", ["time.time_ns()", "random.random()", "os.urandom(8)", "id(object())", "uuid.uuid4()"]
)
def test_an_output_that_differs_is_refused(use: Use, value: str) -> None:
    result = use(f"import os, random, time, uuid\n{WRITE}(f'it is {{{value}}}')\n")
    assert result.failure is ToolFailure.NOT_DETERMINISTIC, result
    assert result.detail.startswith("two runs on the same database differ from character ")
    assert len(result.outcomes) == 2


@pytest.mark.probe("T10", "instructions, fences and escapes in names and values of the database (S6)")
def test_what_a_database_says_arrives_as_data(use: Use) -> None:
    result = use(
        "import sqlite3\nc = sqlite3.connect('database.sqlite')\n"
        f"names = [row[0] for row in c.execute('SELECT name FROM sqlite_master UNION ALL SELECT name FROM person')]\n"
        f"with open({OUTPUT!r}, 'w', newline='') as file:\n    file.write('|'.join(names))\n",
        observe=False,
    )
    assert result.failure is None, result.detail
    assert {PAYLOAD, TABLE} <= set(str(result.text).split("|"))
    raw = use(f"{WRITE}(chr(0))\n", observe=False)
    assert raw.failure is ToolFailure.NOT_TEXT


FORGERY = """
import glob, json, os, struct
body = b"forged"
head = json.dumps({"type": "done", "exit_code": 0, "signal": None, "disk_full": False, "flooded": False, "output": "ok",
    "blobs": [["output", len(body)], ["said", 0], ["observed", 0]]}).encode()
whole = struct.pack(">II", len(head), len(body)) + head + body
for path in sorted(glob.glob("/proc/[0-9]*/fd/[0-9]*")):
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        os.write(descriptor, WHOLE)
    except OSError:
        pass
open("tool_output/analysis.md", "w").write("its own")
"""


FORGED_ENDINGS = {ToolFailure.ERROR, ToolFailure.KILLED, ToolFailure.NOT_DETERMINISTIC, ToolFailure.NOT_TEXT}


@pytest.mark.probe("T13", "forge frames on every descriptor in reach (S6, S7)")
@pytest.mark.parametrize("piece", ["whole", "whole * 3", "whole[:-1]", "b'\\xff' * 64", "b'\\0' * 4096", "whole[:8]"])
def test_a_forged_frame_says_no_more_than_the_tool_could(use: Use, piece: str) -> None:
    result = use(FORGERY.replace("WHOLE", piece))
    if result.failure is None:
        assert result.text in {"forged", "its own"}
    else:
        assert result.failure in FORGED_ENDINGS, result
    assert "imports 'glob'" in messages(result)  # what the screen says is said before the tool runs


@pytest.mark.probe("T16", "delete everything it can (F9)")
def test_what_is_deleted_is_the_tools_own(use: Use) -> None:
    before = use(HONEST, observe=False)
    wiped = use(
        "import shutil\nfor place in ('/', '/data', '/opt', '/proc', '/tmp'):\n    shutil.rmtree(place, True)\n"
    )
    assert wiped.failure in {ToolFailure.NO_OUTPUT, ToolFailure.ERROR}, wiped
    after = use(HONEST, observe=False)
    assert before.failure is None, before.detail
    assert (after.text, after.failure) == (before.text, None)


@pytest.mark.probe("T17", "walk the whole file system for what the data rules keep back (F3, S20)")
def test_what_is_kept_back_is_nowhere(use: Use) -> None:
    walk = f"""
import json, os, stat
hidden, public, seen = [], [], 0
needle = "-".join(["canary", "7f3a9c"]).encode()
for folder, names, files in os.walk("/"):
    if folder == "/":
        names[:] = [name for name in names if name not in ("proc", "sys", "dev")]
    for name in files:
        path = os.path.join(folder, name)
        try:
            if stat.S_ISREG(os.stat(path).st_mode) and not path.endswith("/analyze.py"):
                with open(path, "rb") as file:
                    content = file.read()
                seen += 1
                hidden += [path] * (needle in content)
                public += [path] * (b"CREATE TABLE" in content and path.startswith("/data"))
        except OSError:
            pass
for name in ("environ", "cmdline", "mountinfo"):
    hidden += [name] * (needle in open("/proc/self/" + name, "rb").read()) if os.access("/proc/self/" + name, 4) else []
{WRITE}(json.dumps([hidden, public, seen > 100]))
"""
    assert CANARY == "canary-7f3a9c"
    result = use(walk)
    assert json.loads(result.text or "") == [[], ["/data/database.sqlite"], True], result


@pytest.mark.probe("T18", "get around the static screen, which is no wall (Q23)")
def test_what_gets_around_the_screen_is_held_by_the_container(use: Use) -> None:
    code = survey(
        """
import socket, sqlite3
attempt("tcp", lambda: socket.create_connection(("1.1.1.1", 443), 2))
attempt("update", lambda: sqlite3.connect("database.sqlite").execute("UPDATE person SET name = 'x'"))
attempt("etc", lambda: open("/etc/passwd", "a"))
attempt("root", os.setuid, 0)
attempt("mount", lambda: raw(165, b"none", b"/tmp", b"tmpfs", 0, 0))
attempt("program", os.execv, "/bin/sh", ["sh"])
"""
    )
    result = use(f"SOURCE = {code!r}\n{EVASION}", observe=False)
    assert result.findings == ()
    answers = found(result)
    assert "allowed" not in answers.values(), answers


@pytest.mark.probe("T19", "meet a tool that ran before, on the same and on another database (X1, X2, X6)")
def test_every_run_is_the_first(use: Use) -> None:
    marker = f"""
import json, os
places = ("/tmp", "/dev/shm", "/work", "/data", "/tmp/tool/tool_output", "/tmp/tool/tools")
processes = sum(name.isdigit() for name in os.listdir("/proc"))
{WRITE}(json.dumps([*(sorted(os.listdir(place)) for place in places[:4]), processes]))
for place in places:
    try:
        open(place + "/marker", "w").write("here")
    except OSError:
        pass
"""
    first, second = use(marker), use(marker)
    assert (first.failure, second.failure) == (None, None), (first.detail, second.detail)
    assert first.text == second.text
    assert "marker" not in str(first.text)


def test_after_all_of_this_an_honest_tool_works_and_is_seen_to(use: Use) -> None:
    result = use(HONEST)
    assert result.findings == ()
    assert 'CREATE TABLE "person"' in str(result.text)
    assert CANARY not in str(result.text)
    assert result.observation is not None
    assert result.observation.imports == ()
    assert result.observation.opened == ("sqlite file:database.sqlite?mode=ro", f"w {OUTPUT}")
    assert result.observation.events == {}


def test_the_canary_is_in_the_original(tmp_path: Path) -> None:
    with closing(make_database(tmp_path / "people.sqlite")) as connection:
        emails = connection.execute("SELECT email FROM person").fetchall()
    assert any(CANARY in str(email) for (email,) in emails)
