"""Analysis tools on real databases: the package that runs begin with, what it costs, and what is on record of it."""

from __future__ import annotations

import hashlib
import os
import runpy
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Policy, Purpose
from orchestrator.domain.tool_runs import ToolFailure
from orchestrator.errors import SandboxError
from orchestrator.evaluation.database_tools import SandboxDatabaseTools
from orchestrator.evaluation.databases import DatabaseStore, Domain, SandboxDatabase
from orchestrator.methods.robophd.naive import naive_package
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.image_inputs import SOURCES
from orchestrator.sandbox.images import ImageStore

if TYPE_CHECKING:
    from conftest import KeptRecords

pytestmark = pytest.mark.docker

RUN = "test-database-tools"
DATA = Path(os.environ.get("EVOLVARIUM_DATA") or Path(__file__).parents[3] / "shared" / "data")
REAL = ("bird/dev_databases/superhero/superhero.sqlite", "spider/database/flight_2/flight_2.sqlite")
Open = Callable[[Path], SandboxDatabase]


@pytest.fixture
def tools(sandbox: DockerSandbox) -> SandboxDatabaseTools:
    return SandboxDatabaseTools(sandbox, run_id=RUN)


@pytest.fixture
def store(sandbox: DockerSandbox, images: ImageStore, tmp_path: Path) -> DatabaseStore:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return DatabaseStore(sandbox, home=home, image_digest=images.digest)


@pytest.fixture
def small(store: DatabaseStore, tmp_path: Path) -> Iterator[SandboxDatabase]:
    path = tmp_path / "small.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE city (name TEXT, people INTEGER)")
        connection.execute("INSERT INTO city VALUES ('Oslo', 700000)")
        connection.commit()
    with store.open(path, "small", Domain.TOOL, run_id=RUN) as database:
        yield database


def changed(**files: str) -> AgentPackage:
    """The package that runs begin with, with other tools."""
    tools = {f"tools/{name}.py": text.encode() for name, text in files.items()}
    return AgentPackage.load({**naive_package().tree, **tools})


@pytest.mark.parametrize("name", REAL)
def test_the_first_package_analyses_a_real_database(
    tools: SandboxDatabaseTools, store: DatabaseStore, name: str
) -> None:
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"no data at {path}; set EVOLVARIUM_DATA")
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with store.open(path, path.stem, Domain.TOOL, run_id=RUN) as database:
        result = tools.analyse(naive_package(), database, attempt_id="tool/1")
    assert result.failure is None, result.detail
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert [table for table in tables if not table.startswith("sqlite_") and table not in str(result.text)] == []
    assert [outcome.ending for outcome in result.outcomes] == [Ending.OK, Ending.OK]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_each_run_of_a_tool_is_on_record(
    tools: SandboxDatabaseTools,
    small: SandboxDatabase,
    policy: Policy,
    images: ImageStore,
    audit: KeptRecords,
    sandbox: DockerSandbox,
) -> None:
    known = len(audit.records)
    assert tools.analyse(naive_package(), small, attempt_id="tool/2").failure is None
    records = [record for record in audit.records[known:] if record.purpose == "tool"]
    assert [(record.attempt_id, record.ending) for record in records] == [("tool/2", "ok")] * 2
    for record in records:
        assert record.policy_digest == policy.digest()
        assert record.image_digest == images.digest(policy.purposes[Purpose.TOOL].image)
        assert small.digest in str(record.mounts)
    assert len({record.input_digest for record in records}) == 1
    assert sandbox.live_containers(RUN) == 0


def test_a_tool_of_several_files_is_told_where_it_fails(tools: SandboxDatabaseTools, small: SandboxDatabase) -> None:
    package = changed(analyze="import helper\nhelper.go(0)\n", helper="def go(x):\n    return 1 / x\n")
    result = tools.analyse(package, small, attempt_id="tool/3")
    assert (result.failure, len(result.outcomes)) == (ToolFailure.ERROR, 1)
    assert '  File "tools/helper.py", line 2, in go\n    return 1 / x\n' in result.detail
    assert result.detail.endswith("ZeroDivisionError: division by zero")


def test_a_tool_that_is_refused_is_not_run(tools: SandboxDatabaseTools, small: SandboxDatabase) -> None:
    result = tools.analyse(changed(analyze="import subprocess\n"), small, attempt_id="tool/4")
    assert (result.failure, result.outcomes) == (ToolFailure.REFUSED, ())
    assert result.detail == "tools/analyze.py, line 1: imports 'subprocess'"


def test_the_interpreter_in_the_image_has_what_tools_may_import(
    tools: SandboxDatabaseTools, small: SandboxDatabase
) -> None:
    modules = runpy.run_path(str(SOURCES / "tool" / "runner" / "rules.py"))["MODULES"]
    lines = [f"import {name}" for name in modules if name != "__future__"]
    source = "\n".join([*lines, "open('tool_output/schema.txt', 'w').write('all')"])
    result = tools.analyse(changed(analyze=source), small, attempt_id="tool/5")
    assert (result.text, result.detail) == ("all", "")


def test_a_database_that_is_not_there_is_no_failure_of_the_tool(
    tools: SandboxDatabaseTools, small: SandboxDatabase
) -> None:
    class Gone:
        name = "gone"
        digest = "sha256:" + "0" * 64

    with pytest.raises(SandboxError, match="no volume holds"):
        tools.analyse(naive_package(), Gone(), attempt_id="tool/6")
    assert tools.analyse(naive_package(), small, attempt_id="tool/7").failure is None
