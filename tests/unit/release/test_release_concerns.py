"""What of a tool's doings an operator is told to look at, by what the tool image was seen to report."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.bootstrap.release.concerns import concerns_of
from orchestrator.domain.agent_packages import AgentPackage, Manifest, manifest_bytes
from orchestrator.domain.tool_runs import ToolFailure, ToolObservation, ToolRun

NAIVE: dict[str, Any] = {
    "opened": ("sqlite file:database.sqlite?mode=ro", "w tool_output/analysis.md"),
    "sql": ("SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'",),
    "events": {"os.mkdir": 1},
}
WIDE: dict[str, Any] = {
    "imports": ("base64", "difflib", "heapq", "_heapq", "html.entities", "logging", "string", "atexit", "helper"),
    "opened": (
        "sqlite file:database.sqlite?mode=ro",
        "sqlite /data/database.sqlite",
        "sqlite database.sqlite",
        "sqlite ./database.sqlite",
        "sqlite file:/tmp/tool/database.sqlite?mode=ro&immutable=1",
        "sqlite file:///tmp/tool/database.sqlite?mode=ro",
        "sqlite file:database%2Esqlite",
        "sqlite :memory:",
        "sqlite file::memory:?cache=shared",
        "sqlite ",
        "rb database.sqlite",
        "r tools/analyze.py",
        "rb tools/helper.py",
        "rb tools/__pycache__/helper.cpython-311.pyc",
        "w tool_output/analysis.md",
        "w tool_output/notes/draft.txt",
        "r tool_output/analysis.md",
        "r /tmp/tool/tool_output/../tool_output/analysis.md",
    ),
    "sql": (
        "PRAGMA query_only=ON",
        "\n  -- delete from t\n  select count(*) from t",
        "select replace(name, 'insert into', '') from \"update\" where [delete from x] = 1 /* attach it */",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "EXPLAIN QUERY PLAN SELECT 1",
        "(SELECT 1)",
        "BEGIN ",
    ),
    "events": {
        "marshal.loads": 8, "exec": 16, "compile": 8, "sys._getframe": 2, "object.__setattr__": 2, "os.listdir": 2,
        "object.__getattr__": 8, "builtins.id": 8, "pathlib.Path.glob": 1, "os.scandir": 8, "pathlib.Path.rglob": 1,
        "os.mkdir": 2,
    },
}  # fmt: skip
"""Everything that the screen lets a tool do, as an image reported it."""


def package(output: str = "tool_output/analysis.md") -> AgentPackage:
    return AgentPackage.load(
        {
            "agent.json": manifest_bytes(Manifest(command=("tools/analyze.py",), output=output)),
            "eval_instructions.md": b"",
            "tools/analyze.py": b"import helper\n",
            "tools/helper.py": b"",
        }
    )


def concerns(seen: dict[str, Any] | None, *, output: str = "tool_output/analysis.md", **more: Any) -> tuple[str, ...]:
    observation = None if seen is None else ToolObservation(**{**seen, **more})
    return concerns_of(package(output), ToolRun(text="text", failure=None, observation=observation))


@pytest.mark.parametrize("seen", [NAIVE, WIDE], ids=["naive", "wide"])
def test_what_analysing_a_database_takes_is_no_concern(seen: dict[str, Any]) -> None:
    assert concerns(seen) == ()
    assert concerns({**seen, "opened": (*seen["opened"], "w notes.md")}, output="notes.md") == ()


@pytest.mark.parametrize(
    "entry",
    [
        "r /etc/passwd",
        "r /etc/passwd.py",
        "r /etc/database.sqlite",
        "r database.sqlite/../../../etc/passwd",
        "rb tool_output/../../../etc/shadow",
        "r tools/../secret.py",
        "r tools/__pycache__/../../x.pyc",
        "r tools/other.py",
        "r /proc/self/environ",
        "r 5",
        "sqlite /etc/passwd",
        "sqlite file:/data/../etc/passwd?x=database.sqlite",
        "sqlite file:%2Fetc%2Fpasswd",
        "sqlite tools/database.sqlite",
        "r ",
        "r",
    ],
)
def test_a_file_that_is_none_of_its_own_is(entry: str) -> None:
    (found,) = concerns({**NAIVE, "opened": (*NAIVE["opened"], entry)})
    assert found.startswith(f"it opened a file that is none of its own: {entry.strip()}")


@pytest.mark.parametrize(
    "entry",
    [
        "w /tmp/elsewhere",
        "w tool_output/../../x",
        "w database.sqlite",
        "w tools/analyze.py",
        "a /tmp/tool_output/analysis.md",
        "r+ database.sqlite",
        "x /dev/shm/x",
        "w analysis.md",
        "w evil/tool_output/analysis.md",
        "w 5",
    ],
)
def test_a_file_that_is_written_and_is_not_its_output_is(entry: str) -> None:
    (found,) = concerns({**NAIVE, "opened": (*NAIVE["opened"], entry)})
    assert found == f"it opened a file for writing: {entry}"


def test_a_tool_that_prints_has_no_file_for_its_output() -> None:
    assert concerns({**NAIVE, "opened": ("sqlite database.sqlite",)}, output="stdout") == ()
    assert concerns({**NAIVE, "opened": ("sqlite database.sqlite", "w stdout")}, output="stdout") == (
        "it opened a file for writing: w stdout",
    )


@pytest.mark.parametrize(
    "event",
    [
        "socket.connect", "socket.__new__", "socket.getaddrinfo", "subprocess.Popen", "os.fork", "os.system", "os.exec",
        "os.putenv", "os.remove", "os.rename", "os.symlink", "os.link", "os.chmod", "os.kill", "ctypes.dlopen",
        "sqlite3.load_extension", "sqlite3.enable_load_extension", "importlib.anything", "pathlib.anything",
        "mmap.__new__", "sys.settrace", "sys.addaudithook", "gc.get_objects", "code.interact", "an.event.of.its.own",
    ],
)  # fmt: skip
def test_an_event_that_is_not_known_to_be_harmless_is(event: str) -> None:
    assert concerns(NAIVE, events={event: 1}) == (f"{event}, once",)
    assert concerns(NAIVE, events={"os.mkdir": 2, event: 4}) == (f"{event}, 4 times or more",)


@pytest.mark.parametrize("module", ["socket", "_socket", "ctypes", "subprocess", "multiprocessing", "mmap", "asyncio"])
def test_a_module_that_reaches_out_is(module: str) -> None:
    assert concerns(NAIVE, imports=("json", module)) == (f"it imported {module}",)


@pytest.mark.parametrize(
    "sql",
    [
        "attach '/etc/passwd' as p",
        "create table x(y)",
        "  ;; INSERT INTO t VALUES (1)",
        "WITH x AS (SELECT 1) INSERT OR REPLACE INTO t SELECT * FROM x",
        "with x as (select 1) delete\n from t",
        "WITH x AS (SELECT 1) UPDATE t SET a = 1",
        "/* SELECT */ DROP TABLE t",
        "-- SELECT\nvacuum into '/tmp/x'",
        "EXPLAIN DELETE FROM t",
        "REPLACE INTO t VALUES (1)",
        "DETACH p",
    ],
)
def test_sql_that_does_not_only_read_is(sql: str) -> None:
    assert concerns(NAIVE, sql=(sql,)) == (f"it ran SQL that does not only read: {' '.join(sql.split())}",)


def test_what_kept_from_being_watched_or_was_not_listed_is() -> None:
    assert concerns({}) == ("it was not seen to open the database, so it may have kept from being watched",)
    assert concerns(NAIVE, omitted=3) == ("3 more things that it did are not listed",)


def test_a_failure_comes_first_and_stands_alone_where_nothing_ran() -> None:
    refused = ToolRun(text=None, failure=ToolFailure.MEMORY, observation=ToolObservation(**NAIVE, omitted=1))
    assert concerns_of(package(), refused) == ("it failed: memory", "1 more things that it did are not listed")
    nothing = ToolRun(text=None, failure=ToolFailure.KILLED)
    assert concerns_of(package(), nothing) == ("it failed: killed",)


@given(
    opened=st.lists(st.text(max_size=400), max_size=5),
    sql=st.lists(st.text(max_size=400), max_size=5),
    events=st.dictionaries(st.text(max_size=40), st.integers(1, 9), max_size=5),
)
def test_whatever_a_tool_says_of_itself_is_a_few_short_lines(
    opened: list[str], sql: list[str], events: dict[str, int]
) -> None:
    found = concerns({"opened": tuple(opened), "sql": tuple(sql), "events": events})
    assert all("\n" not in line and len(line) <= 200 for line in found)
