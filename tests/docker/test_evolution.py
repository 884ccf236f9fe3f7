"""`evolvarium sql evolve` with real containers, on three small databases: nothing is lost, told or left behind."""

from __future__ import annotations

import json
import re
import secrets
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.robophd.choices import DatasetChoice, EvolveChoices
from orchestrator.bootstrap.robophd.running import Watch, begin_evolution
from orchestrator.bootstrap.sql.choices import Layout
from orchestrator.cli.evolution_documents import EvolutionDocument, FinalDocument
from orchestrator.domain.conversation import Conversation, Reply, Sampling, ToolSpec, Usage
from orchestrator.domain.records import to_record
from orchestrator.errors import RunStateError
from orchestrator.llm.offline import OfflineModel
from orchestrator.methods.robophd.settings import Settings
from orchestrator.ports import Journal, LanguageModel
from orchestrator.runtime.workers import CancelToken
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.images import ImageStore
from orchestrator.sandbox.owners import CONTAINER_KIND, KIND, RUN
from orchestrator.storage.runs import RunStore
from tests.command_line import ROOT, SECONDS, CommandLine, wait_until
from tests.evolution_data import CANARY, HIDDEN, gold_rows, write_list

pytestmark = pytest.mark.docker

TIMED = frozenset({"wall_seconds", "cpu_seconds"})
"""Fields that say how long something took."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass
class Overheard:
    """The offline model; keeps every conversation it is asked about."""

    model: LanguageModel = field(default_factory=OfflineModel)
    requests: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def context_tokens(self) -> int:
        return self.model.context_tokens

    @property
    def is_repeatable(self) -> bool:
        return self.model.is_repeatable

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        return self.model.count_tokens(conversation, tools)

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        return self.model.worst_case(conversation, tools, sampling)

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        self.requests.append(json.dumps([to_record(conversation), [to_record(tool) for tool in tools]]))
        return self.model.complete(conversation, tools, sampling)


@pytest.fixture(scope="module")
def command(home: Path, images: ImageStore, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    images.verify()
    return CommandLine.beside(home, tmp_path_factory.mktemp("installation"))


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_list(tmp_path_factory.mktemp("data"), canary=CANARY)


@pytest.fixture(scope="module")
def evolve(questions: Path) -> tuple[str, ...]:
    return ("sql", "evolve", "--jsonl", str(questions), "--iterations", "2", "--seed", "0")


@pytest.fixture(scope="module")
def overheard() -> Overheard:
    return Overheard()


@pytest.fixture(scope="module")
def undisturbed(command: CommandLine, questions: Path, overheard: Overheard) -> str:
    """A run that nothing disturbed, made in this process to hear what models are told."""
    data = DatasetChoice(kind=Layout.JSONL, root=str(questions.resolve()))
    ended = begin_evolution(
        find_places(command.home, None),
        EvolveChoices(datasets=(data,)),
        Settings(iterations=2),
        Watch(token=CancelToken(), note=lambda _: None),
        models=lambda _name, _role: overheard,
    )
    assert ended.containers_left == 0
    return ended.run_id


@pytest.fixture
def left(engine: Engine) -> Callable[[str], int]:
    """Counts containers of a run, in any state."""
    return lambda run_id: len(engine.containers({KIND: CONTAINER_KIND, RUN: run_id}))


def test_a_run_comes_to_a_champion_that_show_and_the_audit_know(command: CommandLine, undisturbed: str) -> None:
    document = EvolutionDocument.model_validate(command.call("show", undisturbed, "--json").document)
    assert (document.state, len(document.iterations), document.iterations[1].newcomer) == ("done", 2, "p02")
    assert sorted(name for part in document.databases.values() for name in part) == ["garden", "harbor", "museum"]
    assert document.champion in {package.id for package in document.packages if package.select_questions == 7}
    assert (document.left_out, document.standings) == ([], {"evaluable": 14})
    assert command.call("audit", "verify").code == 0
    again = command.call("resume", undisturbed, "--json")
    assert (again.code, again.document["champion"]) == (0, document.champion)


def test_gold_queries_and_gold_rows_are_in_nothing_that_a_model_is_told(
    command: CommandLine, questions: Path, undisturbed: str, overheard: Overheard
) -> None:
    with RunStore(command.home).open(undisturbed, read_only=True) as journal:
        assert any(CANARY in str(row) for row in gold_rows(journal)), "the canary is where it belongs"
        told = {key: text for key, text in _texts(journal).items() if not key.startswith("q/")}
    assert len(overheard.requests) == sum(key.split("/")[-2:-1] == ["request"] for key in told) > 20
    assert [text for text in overheard.requests if CANARY in text] == []
    assert [key for key, text in told.items() if CANARY in text] == []
    final = command.records(undisturbed)["run"]["data"]["final"][0]
    thing = {"garden": "plants", "harbor": "boats", "museum": "paintings"}[final]
    assert [text for text in overheard.requests if thing in text] == [], "nothing of final databases"
    assert questions.read_text().count(CANARY) == 21


def test_a_replay_needs_no_container_and_comes_to_the_same(
    command: CommandLine, undisturbed: str, left: Callable[[str], int]
) -> None:
    before = (command.home / "audit" / "chain.jsonl").read_bytes()
    ended = command.call("sql", "evolve", "--replay", undisturbed, "--json", DOCKER_HOST="unix:///nonexistent.sock")
    assert ended.code == 0, ended.err
    shown = command.call("show", undisturbed, "--json").document
    assert ended.document["champion"] == shown["champion"]
    assert ended.document["requests"] == sum(one["requests"] for one in shown["spent"].values())
    assert (command.home / "audit" / "chain.jsonl").read_bytes() == before
    assert left(undisturbed) == 0


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_at_random_moments_a_resumed_run_comes_to_the_same_archive_ratings_and_ledger(
    command: CommandLine, evolve: tuple[str, ...], undisturbed: str, left: Callable[[str], int], kills: int
) -> None:
    expected = command.records(undisturbed)
    moments = sorted(secrets.SystemRandom().sample(range(2, len(expected) - 2), kills))
    run_id = command.killed_at(moments[0], *evolve)
    for moment in moments[1:]:
        command.killed_at(moment, "resume", run_id)
    ended = command.call("resume", run_id, "--json")
    assert ended.code == 0, (moments, ended.err)
    assert _timeless(command.records(run_id)) == _timeless(expected), moments
    wanted = command.call("show", undisturbed, "--json").document
    for part in ("iterations", "packages", "champion", "spent", "standings"):
        assert ended.document[part] == wanted[part], (part, moments)
    assert ended.document["lost"] == 0
    assert left(run_id) == 0
    command.call("runs", "remove", run_id, "--yes")


def test_an_interrupt_leaves_no_container_and_the_run_goes_on(
    command: CommandLine, evolve: tuple[str, ...], left: Callable[[str], int]
) -> None:
    process = command.start(*evolve)
    run_id = command.new_run(process)
    wait_until(process, lambda: left(run_id) > 0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, err
    assert f"evolvarium resume {run_id}" in err
    assert "Traceback" not in err
    assert left(run_id) == 0
    command.call("runs", "remove", run_id, "--yes")


def test_final_databases_are_scored_once_and_the_journal_says_so(command: CommandLine, undisturbed: str) -> None:
    poor = command.call("final", undisturbed, "--budget-tokens", "100", "--json")
    assert (poor.code, "score again with a higher limit on tokens" in poor.err) == (4, True)
    first = command.call("final", undisturbed, "--model", "offline", "--model", "offline/effort-0.5", "--json")
    assert first.code == 0, first.err
    document = FinalDocument.model_validate(first.document)
    champion = document.champion
    packages = dict.fromkeys([champion, "naive"])
    assert [(one.package, one.model) for one in document.scores] == [
        (package, model) for model in ("offline", "offline/effort-0.5") for package in packages
    ]
    assert {one.questions for one in document.scores} == {7}
    records = command.records(undisturbed)
    assert records["final/opened"]["databases"] == document.databases
    again = command.call("final", undisturbed, "--json", DOCKER_HOST="unix:///nonexistent.sock")
    assert again.code == 0, again.err
    assert again.document["scores"] == [one for one in first.document["scores"] if one["model"] == "offline"]
    assert command.records(undisturbed) == records


def test_a_branch_keeps_the_beginning_and_pays_for_nothing_twice(
    command: CommandLine, undisturbed: str, left: Callable[[str], int]
) -> None:
    ended = command.call(
        "sql", "evolve", "--branch", undisturbed, "--from-iteration", "2", "--set", "evolver.deep_focus=0", "--json"
    )
    assert ended.code == 0, ended.err
    document = EvolutionDocument.model_validate(ended.document)
    source = EvolutionDocument.model_validate(command.call("show", undisturbed, "--json").document)
    assert document.iterations[0] == source.iterations[0]
    assert document.databases == source.databases
    assert document.branch is not None
    assert (document.branch.run, document.branch.from_iteration) == (undisturbed, 2)
    naive = {key for key in command.records(undisturbed) if key.startswith("tool/")}
    assert naive & {key for key in command.records(document.run) if key.startswith("tool/")}
    chain = (command.home / "audit" / "chain.jsonl").read_text().splitlines()
    kept = command.records(undisturbed)["package/naive"]["digest"].removeprefix("sha256:")[:16]
    again = [line for line in chain if document.run in line and f"tool/{kept}/" in line]
    assert again == [], "the naive package's tool has run in the other run already"
    assert left(document.run) == 0
    assert command.call("sql", "evolve", "--replay", document.run).code == 0


def test_what_a_policy_hides_is_in_nothing_that_a_run_records(
    command: CommandLine, tmp_path: Path, left: Callable[[str], int]
) -> None:
    document = yaml.safe_load((ROOT / "policies" / "default.yaml").read_text())
    document["name"] = "no_phones"
    for rule in document["data"]:
        rule["redact"] = ["*.phone"]
    policy = tmp_path / "no_phones.yaml"
    policy.write_text(yaml.safe_dump(document))
    data = write_list(tmp_path / "data")
    ended = command.call(
        "sql", "evolve", "--jsonl", str(data), "--iterations", "2", "--policy", str(policy), "--json"
    )  # fmt: skip
    assert ended.code == 0, ended.err
    with RunStore(command.home).open(ended.document["run"], read_only=True) as journal:
        texts = _texts(journal)
    assert any("keepers" in text for key, text in texts.items() if key.startswith("tool/"))
    assert [key for key, text in texts.items() if HIDDEN in text or ("phone" in text and key != "run")] == []
    assert left(ended.document["run"]) == 0


def test_a_run_under_a_policy_without_tools_ends_before_anything_is_imported(
    command: CommandLine, evolve: tuple[str, ...], tmp_path: Path
) -> None:
    document = yaml.safe_load((ROOT / "policies" / "default.yaml").read_text())
    del document["purposes"]["tool"]
    policy = tmp_path / "no_tools.yaml"
    policy.write_text(yaml.safe_dump(document))
    runs = command.runs()
    ended = command.call(*evolve, "--policy", str(policy))
    assert (ended.code, "grants no 'tool'" in ended.err, "import" in ended.err) == (2, True, False)
    assert command.runs() == runs


def _texts(journal: Journal) -> dict[str, str]:
    """Every record, with the blobs it names."""
    return {key: "\n".join([json.dumps(dict(record)), *_blobs(journal, record)]) for key, record in journal.records()}


def _blobs(journal: Journal, record: Any) -> Iterator[str]:
    for digest in set(_DIGEST.findall(json.dumps(dict(record)))):
        try:
            yield journal.get_blob(digest).decode(errors="replace")
        except RunStateError:
            continue  # a digest of something else


def _timeless(records: dict[str, Any]) -> dict[str, Any]:
    """Records without what depends on how fast the machine was, and without announcements of what was cut off."""
    return {
        key: {name: value for name, value in record.items() if name not in TIMED}
        for key, record in records.items()
        if not key.endswith("/sent")
    }
