# ruff: noqa: S608 - the SQL of these tests is their own
"""The tool runner: a tool, what it leaves, how it ends, and what is told of its doings."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.domain.frames import Frame, unpack_blobs

if TYPE_CHECKING:
    from conftest import Launch, Runner

OUTPUT = "tool_output/analysis.md"
ORDER = {
    "command": ["tools/analyze.py"],
    "output": OUTPUT,
    "output_bytes": 100_000,
    "print_bytes": 1_000_000,
    "observed_bytes": 100_000,
}
OK = {"exit_code": 0, "signal": None, "disk_full": False, "flooded": False, "output": "ok"}
WRITE = f"open({OUTPUT!r}, 'w').write"
Run = Callable[..., tuple[dict[str, Any], dict[str, bytes]]]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "database.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute("INSERT INTO people VALUES (1, 'Ada')")
        connection.commit()
    path.chmod(0o444)
    return path


@pytest.fixture
def start(launch: Launch, tmp_path: Path, database: Path) -> Callable[[], Runner]:
    """A new runner, its working folder below one of `work/`."""
    (tmp_path / "work").mkdir()

    def go() -> Runner:
        work = tempfile.mkdtemp(dir=tmp_path / "work")
        return launch("tool", "--work", work, "--database", str(database))

    return go


@pytest.fixture
def run(start: Callable[[], Runner], database: Path) -> Run:
    """(fields of `done`, its blobs) of a tool that is run although it may be refused."""

    def go(source: str, /, *, files: Mapping[str, str] | None = None, observe: bool = True, **order: Any) -> Any:
        runner = start()
        texts = {"tools/analyze.py": textwrap.dedent(source), **(files or {})}
        screened = runner.start(texts, **{**ORDER, **order})
        assert screened.type == "screened"
        assert screened.head["database"] == hashlib.sha256(database.read_bytes()).hexdigest()
        return fields(runner.ask({"type": "run", "observe": observe}))

    return go


def fields(done: Frame) -> tuple[dict[str, Any], dict[str, bytes]]:
    assert done.type == "done"
    head = {key: value for key, value in done.head.items() if key not in ("type", "blobs")}
    return head, unpack_blobs(done.head["blobs"], done.body)


def entries(blobs: Mapping[str, bytes]) -> list[tuple[str, str]]:
    lines = [json.loads(line) for line in blobs["observed"].splitlines()]
    return [(line["type"], line["text"]) for line in lines]


def test_a_tool_reads_its_database_and_leaves_an_analysis(run: Run) -> None:
    done, blobs = run(
        f"""
        import helper, os, sqlite3, sys
        rows = sqlite3.connect("database.sqlite").execute("SELECT name FROM people").fetchall()
        listed = sorted(os.listdir(".")), os.listdir("tool_output"), sys.argv, __name__
        {WRITE}(helper.shown(rows, listed))
        print("a word")
        """,
        files={"tools/helper.py": "def shown(*parts): return '|'.join(map(str, parts))\n"},
        command=["tools/analyze.py", "--rows", "5"],
        observe=False,
    )
    assert done == OK
    assert blobs["output"].decode() == (
        "[('Ada',)]|(['database.sqlite', 'tool_output', 'tools'], [], ['tools/analyze.py', '--rows', '5'], '__main__')"
    )
    assert (blobs["said"], blobs["observed"]) == (b"", b"")


def test_what_a_tool_prints_is_its_analysis_where_its_manifest_says_so(run: Run) -> None:
    done, blobs = run("import sys\nprint('h\u00e9llo')\nprint('aside', file=sys.stderr)\n", output="stdout")
    assert (done, blobs["output"].decode(), blobs["said"]) == (OK, "h\u00e9llo\n", b"aside\n")


def test_nothing_runs_before_the_screen_was_heard(start: Callable[[], Runner], tmp_path: Path) -> None:
    runner = start()
    marker = tmp_path / "marker"
    screened = runner.start({"tools/analyze.py": f"import socket\nopen({str(marker)!r}, 'w')\n"}, **ORDER)
    assert screened.head["findings"][0] == ["tools/analyze.py", 1, "imports 'socket'"]
    assert screened.head["findings"][1][:2] == ["tools/analyze.py", 2]
    assert screened.head["omitted"] == 0
    assert runner.end() == (0, "")
    assert runner.receive() is None
    assert not marker.exists()


def test_of_many_findings_the_first_are_told(start: Callable[[], Runner]) -> None:
    screened = start().start({"tools/analyze.py": "import socket\n" * 50}, **ORDER)
    assert (len(screened.head["findings"]), screened.head["omitted"]) == (20, 30)


@pytest.mark.parametrize(
    ("statement", "exit_code", "said"),
    [
        ("sys.exit()", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('words')", 1, "words\n"),
        ("os._exit(4)", 4, ""),
        ("print('x', file=sys.stderr); raise SystemExit(256 + 7)", 7, "x\n"),
    ],
)
def test_a_tool_ends_as_a_plain_interpreter_would_end_it(run: Run, statement: str, exit_code: int, said: str) -> None:
    done, blobs = run(f"import os, sys\n{statement}\n")
    assert (done, blobs["said"].decode()) == (OK | {"exit_code": exit_code, "output": "missing"}, said)


def test_a_traceback_names_only_the_tools_own_files(run: Run, tmp_path: Path) -> None:
    done, blobs = run(
        """
        import json
        from helper import f
        try:
            json.loads("{")
        except ValueError as error:
            f(0)
        """,
        files={"tools/helper.py": "def f(x):\n    return 1 / x\n"},
    )
    said = blobs["said"].decode()
    assert done["exit_code"] == 1
    assert '  File "tools/analyze.py", line 5, in <module>\n    json.loads("{")\n' in said
    assert '  File "tools/helper.py", line 2, in f\n    return 1 / x\n' in said
    assert '  File "decoder.py"' in said
    assert said.endswith("ZeroDivisionError: division by zero\n")
    assert str(tmp_path) not in said
    assert 'File "/' not in said
    assert "script.py" not in said


def test_of_a_long_complaint_the_end_is_kept(run: Run) -> None:
    _, blobs = run("import sys\nsys.stderr.write('a' * 500_000 + 'the end')\nsys.exit(1)\n")
    assert len(blobs["said"]) == 16 << 10
    assert blobs["said"].endswith(b"athe end")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_flood_ends_the_tool(run: Run, stream: str) -> None:
    done, blobs = run(f"import sys\nwhile True:\n    sys.{stream}.write('x' * 65536)\n", output="stdout")
    assert (done["flooded"], done["signal"]) == (True, 9)
    assert len(blobs["output"]) <= 100_000


def test_an_analysis_that_is_too_long_is_not_taken(run: Run) -> None:
    done, blobs = run(f"{WRITE}('x' * 100_001)\n")
    assert (done, blobs["output"]) == (OK | {"output": "too-large"}, b"")
    done, blobs = run("print('x' * 100_000)\n", output="stdout")
    assert (done, blobs["output"]) == (OK | {"output": "too-large"}, b"")


@pytest.mark.parametrize(
    "statement",
    [
        f"os.symlink('/etc/passwd', {OUTPUT!r})",
        f"os.symlink('other.md', {OUTPUT!r}); open('tool_output/other.md', 'w').write('x')",
        "os.rmdir('tool_output'); os.symlink('/etc', 'tool_output')",
        "os.rmdir('tool_output'); open('tool_output', 'w').write('x')",
        f"os.mkfifo({OUTPUT!r})",
        f"os.mkdir({OUTPUT!r})",
        f"socket.socket(socket.AF_UNIX).bind({OUTPUT!r})",
        f"{WRITE}('x'); os.chdir('/'); os.rename(here, here + '2'); os.symlink(here + '2', here)",
    ],
)
def test_only_a_plain_file_is_an_analysis(run: Run, statement: str) -> None:
    done, blobs = run(f"import os, socket\nhere = os.getcwd()\n{statement}\n")
    assert (done, blobs["output"]) == (OK | {"output": "not-a-file"}, b"")


def test_nothing_is_an_analysis_where_nothing_was_written(run: Run) -> None:
    assert run("import shutil\nshutil.rmtree('tool_output')\n")[0] == OK | {"output": "missing"}
    assert run("import os, shutil\nshutil.rmtree(os.getcwd())\n")[0] == OK | {"output": "missing"}


def test_what_a_tool_leaves_running_is_ended(run: Run) -> None:
    done, blobs = run(
        f"""
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                {WRITE}(str(os.getpid()))
                time.sleep(600)
            os._exit(0)
        os.wait()
        while not os.path.exists({OUTPUT!r}) or not os.path.getsize({OUTPUT!r}):
            time.sleep(0.01)
        """
    )
    assert done == OK
    assert not Path(f"/proc/{int(blobs['output'])}").exists()


def test_a_tool_holds_no_descriptor_of_the_channel(run: Run) -> None:
    source = """
        import os, sys
        print(repr(sys.stdin.read()), [n for n in range(64) if os.path.exists(f"/proc/self/fd/{n}")])
        """
    _, blobs = run(source, output="stdout", observe=False, command=["tools/analyze.py"], files={})
    assert blobs["output"] == b"'' [0, 1, 2]\n"


def test_what_a_tool_does_is_told(run: Run) -> None:
    done, blobs = run(
        f"""
        import os, socket, sqlite3, subprocess, uuid
        connection = sqlite3.connect("database.sqlite")
        for _ in range(3):
            connection.execute("SELECT name FROM people WHERE id = ?", (1,))
        for path in ("/etc/passwd", "secret"):
            try:
                open(path)
            except OSError:
                pass
        os.close(os.open("database.sqlite", os.O_RDONLY))
        {WRITE}("x")
        for _ in range(5):
            socket.socket().close()
        """
    )
    assert done == OK
    told = entries(blobs)
    assert ("import", "socket") in told
    assert ("import", "uuid") in told
    assert [text for kind, text in told if kind == "sql"] == ["SELECT name FROM people WHERE id = 1"]
    assert [text for kind, text in told if kind == "open"] == [
        "sqlite database.sqlite", "r /etc/passwd", "r secret", "r database.sqlite", f"w {OUTPUT}",
    ]  # fmt: skip
    events = [json.loads(line) for line in blobs["observed"].splitlines() if b'"event"' in line]
    assert {"type": "event", "text": "socket.__new__", "count": 4} in events
    assert {"type": "event", "text": "socket.__new__", "count": 5} not in events


def test_what_was_done_before_a_kill_is_told(run: Run) -> None:
    done, blobs = run("import os\nopen('secret', 'w')\nos.fork()\nos.kill(os.getpid(), 9)\n")
    assert done["signal"] == 9
    assert {("open", "w secret"), ("event", "os.fork"), ("event", "os.kill")} <= set(entries(blobs))


def test_a_flood_of_doings_is_told_in_few_words(run: Run) -> None:
    done, blobs = run(
        """
        import os, sqlite3
        connection = sqlite3.connect("database.sqlite")
        for n in range(3000):
            connection.execute(f"SELECT {n}, '{'x' * 5000}'")
            os.listdir(".")
        """,
        observed_bytes=2_000_000,
    )
    assert done["exit_code"] == 0
    lines = [json.loads(line) for line in blobs["observed"].splitlines()]
    statements = [line["text"] for line in lines if line["type"] == "sql"]
    assert (len(statements), {len(text) for text in statements}) == (500, {2000})
    assert max(line["count"] for line in lines if line["type"] == "omitted") == 2048
    assert max(line["count"] for line in lines if line.get("text") == "os.listdir") == 2048


@pytest.mark.parametrize(
    "changed",
    [
        {"command": []}, {"command": ["tools/other.py"]}, {"command": "tools/analyze.py"},
        {"command": ["tools/analyze.py", 1]}, {"command": ["tools/analyze.py", "\0"]}, {"output": "../x"},
        {"output": "/etc/x"}, {"output": None}, {"output_bytes": "1"}, {"print_bytes": None},
        {"observed_bytes": []},
    ],
    ids=str,
)  # fmt: skip
def test_an_order_that_is_not_understood_is_refused(start: Callable[[], Runner], changed: dict[str, Any]) -> None:
    runner = start()
    runner.send({"type": "start", "blobs": [["tools/analyze.py", 0]], **ORDER, **changed})
    assert runner.receive() is None
    assert runner.end()[0] == 76


def test_a_disk_that_fails_the_runner_is_no_failure_of_the_tool(launch: Launch, tmp_path: Path, database: Path) -> None:
    (tmp_path / "full").mkdir(mode=0o755)
    (tmp_path / "full" / "tool").touch()
    for work, path in ((tmp_path / "full", database), (tmp_path, tmp_path / "missing.sqlite")):
        runner = launch("tool", "--work", str(work), "--database", str(path))
        runner.send({"type": "start", "blobs": [["tools/analyze.py", 0]], **ORDER})
        assert runner.receive() is None
        code, said = runner.end()
        assert (code, said.partition(": ")[0]) == (74, "runner")


@pytest.mark.parametrize("path", ["../evil.py", "/evil.py", "tools/../../evil.py"])
def test_a_file_outside_the_working_folder_is_refused(start: Callable[[], Runner], tmp_path: Path, path: str) -> None:
    runner = start()
    runner.send({"type": "start", "blobs": [["tools/analyze.py", 0], [path, 0]], **ORDER})
    assert runner.receive() is None
    assert runner.end()[0] == 76
    assert not list(tmp_path.rglob("evil.py"))
