"""Small real databases for RoboPhD's run, the gold results that its judge knows, and tools that really run on them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.domain.agent_packages import STDOUT, AgentPackage
from orchestrator.domain.candidates import FileTree
from orchestrator.domain.sql import QueryResult
from orchestrator.domain.sql_results import result_from_bytes
from orchestrator.domain.tool_runs import ToolFailure, ToolRun
from orchestrator.methods.robophd.ports import Judged
from orchestrator.methods.robophd.questions import QuestionView
from orchestrator.ports import Database
from orchestrator.sql.differences import difference
from tests.answering_lab import tool_run
from tests.memory_journal import Fuse, MemoryJournal
from tests.plain_database import PlainDatabase

SKILLS = ("none", "a", "b", "c")
"""Of a database's questions, in their order; every package has the first."""


class World:
    """Five databases for contests and two for selection, each a SQLite file; gold results are kept apart."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, Path] = {}
        self.questions: dict[str, tuple[QuestionView, ...]] = {}
        self.gold: dict[str, QueryResult] = {}
        self.known_runs: dict[tuple[str, str], ToolRun] = {}
        self.databases: dict[str, WorldDatabase] = {}
        for number, name in enumerate(("demo/d0", "demo/d1", "demo/d2", "demo/d3", "demo/d4", "demo/s0", "demo/s1")):
            self._add(folder, name, number)

    @property
    def evolve(self) -> dict[str, tuple[QuestionView, ...]]:
        return {name: questions for name, questions in self.questions.items() if "/d" in name}

    @property
    def select(self) -> dict[str, tuple[QuestionView, ...]]:
        return {name: questions for name, questions in self.questions.items() if "/s" in name}

    def close(self) -> None:
        for database in self.databases.values():
            database.close()

    def _add(self, folder: Path, name: str, number: int) -> None:
        path = folder / f"{name.replace('/', '_')}.sqlite"
        with sqlite3.connect(path) as writing:
            writing.execute(f"CREATE TABLE item{number} (id INTEGER PRIMARY KEY, name TEXT, price INTEGER)")
            rows = [(key, f"thing {number}.{key}", 10 * key + number) for key in range(1, 7)]
            writing.executemany(f"INSERT INTO item{number} VALUES (?, ?, ?)", rows)  # noqa: S608 - our own
        writing.close()
        self.files[name] = path
        database = WorldDatabase(path, name)
        self.databases[name] = database
        self.questions[name] = tuple(
            QuestionView(
                id=f"{name}.q{place}",
                database=name,
                text=f"Which things of item{number} cost less than {10 * place + 18}? Skill: {skill}.",
                evidence="cost refers to price" if place else "",
                group=f"group-{number}-{place}",
            )
            for place, skill in enumerate(SKILLS)
        )
        for question in self.questions[name]:
            self.gold[question.id] = database.query(right_query(question.text), attempt_id="gold")
        database.asked.clear()


def right_query(question: str) -> str:
    words = question.replace("?", "").split()
    table, price = words[words.index("of") + 1], words[words.index("than") + 1]
    return f"SELECT name FROM {table} WHERE price < {price}"  # noqa: S608 - our own


class WorldDatabase(PlainDatabase):
    """A SQLite file, opened to be read; can burn."""

    def __init__(self, path: Path, name: str) -> None:
        digest = "sha256:" + FileTree({"database": path.read_bytes()}).manifest()["database"]
        reading = sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)
        super().__init__(reading, name, digest=digest)
        self.path = path


@dataclass
class WorldDatabases:
    """`robophd.ports.Databases`; notes what is opened."""

    world: World
    opened: list[str] = field(default_factory=list)

    @contextmanager
    def open(self, name: str) -> Iterator[Database]:
        self.opened.append(name)
        yield self.world.databases[name]


@dataclass
class WorldJudge:
    """`robophd.ports.ContestJudge` by the world's gold results."""

    gold: Mapping[str, QueryResult]
    journal: MemoryJournal

    def judge(self, question: str, result: str | None) -> Judged:
        if result is None:
            return Judged(is_right=False, difference=("there is no query",))
        found, wanted = result_from_bytes(self.journal.get_blob(result)), self.gold[question]
        if found.is_ok and set(found.rows) == set(wanted.rows):
            return Judged(is_right=True)
        return Judged(is_right=False, difference=difference(found, wanted, ordered=False))


@dataclass
class LocalTools:
    """`ports.DatabaseTools` that runs tools here, twice, in an isolated Python; equal ones are not run again."""

    world: World
    fuse: Fuse = field(default_factory=Fuse)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def analyse(self, package: AgentPackage, database: Database, *, attempt_id: str, observe: bool = False) -> ToolRun:
        assert attempt_id.startswith("tool/")
        assert not observe
        self.fuse.touch()
        self.asked.append((package.digest, database.name))
        key = (package.tool_files.digest + package.manifest.model_dump_json(), database.name)
        if key not in self.world.known_runs:
            self.world.known_runs[key] = run_locally(package, self.world.files[database.name])
        return self.world.known_runs[key]


def run_locally(package: AgentPackage, database: Path) -> ToolRun:
    """What a tool gives on a SQLite file."""
    first, second = _run_once(package, database), _run_once(package, database)
    return first if first == second else tool_run(None, ToolFailure.NOT_DETERMINISTIC, "two runs differ")


def _run_once(package: AgentPackage, database: Path) -> ToolRun:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "tools").mkdir()
        (folder / "tool_output").mkdir()
        (folder / "database.sqlite").symlink_to(database)
        for path, content in package.tool_files.items():
            (folder / path).write_bytes(content)
        command = [sys.executable, "-I", *package.manifest.command]
        done = subprocess.run(command, cwd=folder, env={}, capture_output=True, timeout=60, check=False)
        if done.returncode:
            return tool_run(None, ToolFailure.ERROR, done.stderr.decode().strip().splitlines()[-1])
        if package.manifest.output == STDOUT:
            return tool_run(done.stdout.decode())
        output = folder / package.manifest.output
        return tool_run(output.read_text()) if output.exists() else tool_run(None, ToolFailure.NO_OUTPUT)
