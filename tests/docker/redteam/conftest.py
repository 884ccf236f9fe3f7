"""The attacker's side: every container here runs code that wants out, under every runtime that the engine offers."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from expectations import RUNTIMES
from hostile_tools import OUTPUT, Tightened, hostile_database, package
from hostility import RUN, lowered, survey_script, with_sequences

from orchestrator.domain.audit import AuditRecord
from orchestrator.domain.candidates import FileTree
from orchestrator.domain.policies import Limits, MountRole, Policy, Purpose, Runtime
from orchestrator.domain.tool_runs import ToolRun
from orchestrator.domain.verdicts import Verdict
from orchestrator.evaluation.analyst import SandboxAnalyst
from orchestrator.evaluation.database_tools import SandboxDatabaseTools
from orchestrator.evaluation.databases import SandboxDatabase
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.evaluation.seeds import SeedSource
from orchestrator.evaluation.tasks import Task, load_task
from orchestrator.ports import AnalysisResult
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.images import ImageStore
from orchestrator.sandbox.policy_files import load_policy

PROJECT = Path(__file__).parents[3]
PUBLIC_FILE = "public.txt"


def pytest_configure(config: pytest.Config) -> None:
    """Every probe carries the id of the threat catalogue and its idea."""
    config.addinivalue_line("markers", "probe(id, idea): a probe of docs/threat-model.md")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every task under gVisor takes minutes: `make redteam` does it, `make test` does not."""
    for item in items:
        if item.path.name == "test_every_task.py" and f"[{Runtime.RUNSC.value}-" in item.name:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """No container of a probe outlives it."""
    yield
    if "sandbox" in request.fixturenames:
        assert request.getfixturevalue("sandbox").live_containers(RUN) == 0


@pytest.fixture(scope="session", params=list(Runtime), ids=lambda runtime: runtime.value)
def runtime(request: pytest.FixtureRequest, engine: Engine) -> Runtime:
    """Every runtime that the engine offers."""
    runtime: Runtime = request.param
    offered = engine.info().get("Runtimes") or {}
    if runtime.value not in offered:
        pytest.skip(f"the engine has no runtime {runtime.value!r}, only {', '.join(sorted(offered))}")
    return runtime


@pytest.fixture(scope="session")
def expected(runtime: Runtime) -> Mapping[str, Any]:
    """What differs from runtime to runtime."""
    return RUNTIMES[runtime]


@pytest.fixture(scope="session")
def policy(runtime: Runtime) -> Policy:
    """The shipped default policy under this runtime."""
    shipped = load_policy(PROJECT / "policies" / "default.yaml")
    grants = {purpose: grant.model_copy(update={"runtime": runtime}) for purpose, grant in shipped.purposes.items()}
    return shipped.model_copy(update={"purposes": grants})


@dataclass(frozen=True)
class KeptRecords:
    """An audit log in memory."""

    records: list[AuditRecord]

    def append(self, record: AuditRecord) -> None:
        self.records.append(record)  # atomic under the interpreter's lock

    def last(self, purpose: Purpose) -> AuditRecord:
        return next(record for record in reversed(self.records) if record.purpose == purpose.value)


@pytest.fixture(scope="session")
def audit() -> KeptRecords:
    return KeptRecords([])


@pytest.fixture(scope="session")
def sandbox(
    policy: Policy, engine: Engine, images: ImageStore, proofs: Any, audit: KeptRecords
) -> Iterator[DockerSandbox]:
    with DockerSandbox(policy=policy, engine=engine, images=images, proofs=proofs, audit=audit) as sandbox:
        yield sandbox


# Analyses: anything goes


@pytest.fixture(scope="session")
def public_text() -> bytes:
    """Content of the public data; the control of every search: what may be found is found."""
    return f"public canary {secrets.token_hex(16)}\n".encode()


@pytest.fixture(scope="session")
def task(public_text: bytes, expected: Mapping[str, Any]) -> Task:
    """Online bin packing with public data, and as many sequences as the runtime bears."""
    shipped = load_task(PROJECT / "tasks" / "online_bin_packing")
    return with_sequences(replace(shipped, public={PUBLIC_FILE: public_text}), expected["sequences"])


Analyse = Callable[..., AnalysisResult]


@pytest.fixture
def analyse(sandbox: DockerSandbox, task: Task) -> Analyse:
    """Runs a script through the `Analyst` port, with some limits lowered."""

    def run(script: str, *, files: Mapping[str, bytes] | None = None, **limits: float) -> AnalysisResult:
        analyst = SandboxAnalyst(sandbox, lowered(task, Purpose.ANALYSIS, limits))
        tree = FileTree({"analysis.py": script.encode(), **(files or {})})
        return analyst.analyse(tree, run_id=RUN, attempt_id="probe")

    return run


@pytest.fixture(scope="session")
def surveys(runtime: Runtime) -> dict[str, Mapping[str, Any]]:  # noqa: ARG001 - one set per runtime
    return {}


@pytest.fixture
def survey(surveys: dict[str, Mapping[str, Any]], analyse: Analyse) -> Callable[..., Mapping[str, Any]]:
    """What a script of `attacks/` found; it runs once, however many probes look at its findings."""

    def find(name: str, **parameters: object) -> Mapping[str, Any]:
        if name not in surveys:
            result = analyse(survey_script(name, **parameters))
            lines = result.output.decode().strip().splitlines()
            assert result.outcome.ending.value == "ok", result
            surveys[name] = json.loads(lines[-1])
        return surveys[name]

    return find


# Formal evaluations

Evaluate = Callable[..., Verdict]


@pytest.fixture(scope="session")
def store(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> SplitStore:
    """An installation of its own, with a secret seed."""
    home = tmp_path_factory.mktemp(f"home-{runtime.value}")
    home.chmod(0o700)
    return SplitStore(home=home, seeds=SeedSource.installation(home))


@pytest.fixture(scope="session")
def evaluate(sandbox: DockerSandbox, task: Task, store: SplitStore) -> Evaluate:
    """Formally evaluates a payload on a split, with some of the candidate's limits lowered."""
    hosts: dict[object, EvaluatorHost] = {}

    def run(payload: FileTree, *, split: str = "hidden", **limits: float) -> Verdict:
        key = split, *sorted(limits.items())
        if key not in hosts:
            hosts[key] = EvaluatorHost(sandbox, lowered(task, Purpose.CANDIDATE, limits), split, store)
        return hosts[key].evaluate(payload, run_id=RUN, attempt_id="probe")

    return run


@pytest.fixture(scope="session")
def best_fit(evaluate: Evaluate, task: Task) -> Mapping[str, float]:
    """What an honest program scored before anything hostile ran."""
    verdict = evaluate(task.initial)
    assert verdict.metrics is not None
    return verdict.metrics


@pytest.fixture
def mounts(sandbox: DockerSandbox, task: Task) -> Mapping[MountRole, str]:
    """The public data."""
    return {MountRole.PUBLIC: sandbox.import_volume(task.public, run_id=RUN)}


# Analysis tools

Use = Callable[..., ToolRun]


@pytest.fixture(scope="session")
def tool_database(
    sandbox: DockerSandbox, images: ImageStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SandboxDatabase]:
    """What tools are let loose on."""
    with hostile_database(sandbox, images, tmp_path_factory.mktemp("redteam-tools")) as database:
        yield database


@pytest.fixture
def use(sandbox: DockerSandbox, tool_database: SandboxDatabase, policy: Policy) -> Use:
    """Runs a tool with some limits lowered; afterwards the database is, byte for byte, what was imported."""

    def run(source: str, *, output: str = OUTPUT, observe: bool = True, **limits: Any) -> ToolRun:
        granted = policy.purposes[Purpose.TOOL].limits
        lowered = Limits.model_validate({**granted.model_dump(), **limits})
        tools = SandboxDatabaseTools(Tightened(sandbox, lowered), run_id=RUN)
        result = tools.analyse(package(source, output), tool_database, attempt_id="probe", observe=observe)
        assert (result.text is None) != (result.failure is None)
        assert len(result.detail) < 3000
        assert tool_database.digest_check()
        return result

    return run
