"""Runs with models behind servers on this machine: no key is left anywhere, and a paused run goes on."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.bootstrap.choices import Choices
from orchestrator.bootstrap.header import policy_record, run_header
from orchestrator.bootstrap.model_choices import GivenAccess, access_in_force, record_access
from orchestrator.bootstrap.model_files import ModelFile
from orchestrator.bootstrap.models import Models, ready_models
from orchestrator.bootstrap.pauses import pausing
from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.cli.model_options import price_given
from orchestrator.cli.search_endings import explained_search
from orchestrator.domain.budgets import Budget
from orchestrator.domain.model_access import ModelAccess, ModelRole
from orchestrator.errors import ModelUnavailable
from orchestrator.evaluation.disclosure import TaskDisclosure
from orchestrator.evaluation.tasks import load_task
from orchestrator.methods.agentic_evolve import RunPorts, run_agentic_evolve
from orchestrator.ports import Journal, LanguageModel
from orchestrator.runtime.ledger import Ledger
from orchestrator.runtime.workers import CancelToken
from orchestrator.storage.runs import RunStore
from tests.in_process import Call, without_engine
from tests.model_servers.base import KEY, Received, Turn
from tests.model_servers.openai import MODEL, OpenAIServer
from tests.recorded_runs import DIGEST, DigestEvaluator, Recording

ROOT = Path(__file__).parents[3]
TASK = "online_bin_packing"
VARIABLE = "CANARY_KEY"
TALK = Turn(text="Let me think about it.", reasoning="hm")
"""A model that only talks, until its idle turns are up."""


@dataclass
class Search:
    """A search on the shipped task without an engine, with its models wired as `run` and `resume` wire them."""

    home: Path
    choices: Choices

    def __post_init__(self) -> None:
        self.recording = Recording.of(self.home, load_task(ROOT / "tasks" / TASK))
        self.policy = find_policy(find_places(self.home, None), "default")

    def begun(self, *, goes_on: bool = True) -> str:
        """A new run, which may have been paused, or has no more than its header yet; its id."""
        run_id, journal = RunStore(self.home).create()
        with journal, self._models(self.choices.access, {}) as models:
            model = models.find(self.choices.model, ModelRole.AGENT)
            in_force = policy_record(self.policy, lambda _: DIGEST)
            header = run_header(self.recording.settings, self.recording.task, model, self.choices, in_force)
            journal.put("run", header)
            with suppress(ModelUnavailable):
                if goes_on:
                    self.go_on(run_id, journal, model)
        return run_id

    def resumed(self, run_id: str, given: GivenAccess) -> None:
        with RunStore(self.home).open(run_id) as journal:
            before = access_in_force(journal, self.choices.access)
            access = given.over(before)
            header = journal.get("run") or {}
            with self._models(access, {self.choices.model: header["context_tokens"]}, given) as models:
                record_access(journal, before, access)
                self.go_on(run_id, journal, models.find(self.choices.model, ModelRole.AGENT))

    def records(self, run_id: str) -> dict[str, Any]:
        with RunStore(self.home).open(run_id, read_only=True) as journal:
            return dict(journal.records())

    def _models(
        self, access: ModelAccess, contexts: dict[str, int], said: GivenAccess | None = None
    ) -> AbstractContextManager[Models]:
        return ready_models(
            access,
            self.policy,
            [(ModelRole.AGENT, self.choices.model)],
            in_usd=self.choices.budget_usd is not None,
            token=CancelToken(),
            note=lambda _: None,
            context_tokens=contexts,
            said=said,
        )

    def go_on(self, run_id: str, journal: Journal, model: LanguageModel) -> None:
        ports = RunPorts(
            model=model,
            evaluator=DigestEvaluator("hidden"),
            analyst=None,
            disclosure=TaskDisclosure(self.policy.disclosure, self.recording.task),
            journal=journal,
            ledger=Ledger(Budget(), per_island=self.choices.budget_per_island(2)),
        )
        with pausing(journal):
            run_agentic_evolve(
                run_id=run_id,
                settings=self.recording.settings,
                task=self.recording.task.view,
                ports=ports,
                cancel=CancelToken(),
            )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def call(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.setenv(VARIABLE, KEY)
    return without_engine(home, monkeypatch, capsys)


def search(home: Path, server: OpenAIServer, model: str = f"openai/{MODEL}", **choices: Any) -> Search:
    access = GivenAccess(base_url=server.url, key_env=VARIABLE).over()
    return Search(home, Choices(**{"task": TASK, "model": model, "access": access, **choices}))


def at(server: OpenAIServer, model: str = MODEL) -> dict[str, Any]:
    """An entry of a file of models."""
    return {"provider": "openai", "model": model, "base_url": server.url, "key": {"env": VARIABLE}}


def holders(folder: Path, secret: str) -> list[Path]:
    """Files that hold a text."""
    return [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_a_key_reaches_its_server_and_nothing_else(call: Call, home: Path, tmp_path: Path) -> None:
    with OpenAIServer([TALK]) as server:
        run_id = search(home, server).begun()
        assert KEY in server.requests[0].headers["authorization"]
        file = tmp_path / "models.yaml"
        file.write_text(yaml.safe_dump({"models": {"fast": at(server)}}))
        here = ("--base-url", server.url, "--key-env", VARIABLE)
        said = [
            call("show", run_id),
            call("show", run_id, "--json"),
            call("runs", "list", "--json"),
            call("report", run_id, "--json"),
            call("run", TASK, "--model", f"openai/{MODEL}", *here),
            call("--debug", "run", TASK, "--model", "fast", "--models", str(file), "--json"),
            call("doctor", "--models", str(file), "--json"),
        ]
        server.revoke()
        said += [
            call("--debug", "run", TASK, "--model", f"openai/{MODEL}", *here, "--json"),
            call("--debug", "doctor", "--models", str(file)),
        ]
    assert [code for code, _, _ in said] == [0, 0, 0, 0, 3, 3, 3, 3, 3]
    assert "engine" in said[4][2]
    assert VARIABLE in said[7][2]
    for _, out, err in said:
        assert KEY not in out + err
    assert holders(home, VARIABLE)
    assert holders(home, KEY) == []


def test_a_context_too_small_for_the_first_request_is_wrong_input_before_any_work(call: Call, tmp_path: Path) -> None:
    with OpenAIServer([TALK]) as server:
        file = tmp_path / "models.yaml"

        def tried(tokens: int) -> tuple[int, str, str]:
            file.write_text(yaml.safe_dump({"models": {"small": {**at(server), "context_tokens": tokens}}}))
            return call("run", TASK, "--model", "small", "--models", str(file))

        code, _, err = tried(1024)
        assert code == 2
        assert "has 1024: no request could be made" in err
        least = int(err.split("whose context has over ")[1].split()[0])
        assert tried(least - 1)[0] == 2
        assert tried(least + 1)[0] == 3  # only the engine is missing
        assert server.requests == []
    assert json.loads(call("runs", "list", "--json")[1])["runs"] == []


def test_a_run_whose_key_is_revoked_is_paused_and_goes_on_with_another_key(
    call: Call, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def revoked_after_three(_: Received) -> Turn:
        if len(server.requests) == 3:
            server.revoke()
        return TALK

    with OpenAIServer(revoked_after_three) as server:
        mine = search(home, server)
        run_id = mine.begun()
        answered = [key for key, record in mine.records(run_id).items() if "reply" in record]
        shown = json.loads(call("show", run_id, "--json")[1])
        assert shown["state"] == "paused"
        assert VARIABLE in shown["pause"]
        assert f"paused: {shown['pause']}"[:40] in call("show", run_id)[1]
        (entry,) = json.loads(call("runs", "list", "--json")[1])["runs"]
        assert (entry["state"], entry["pause"]) == ("paused", shown["pause"])
        code, _, err = call("resume", run_id)
        assert code == 3
        assert "refuses the key" in err
        assert json.loads(call("show", run_id, "--json")[1])["state"] == "paused"
        server.key = "sk-another-key-55"
        monkeypatch.setenv("ANOTHER", "sk-another-key-55")
        before = len(server.requests)
        mine.resumed(run_id, GivenAccess(key_env="ANOTHER"))
        records = mine.records(run_id)
        replies = [key for key, record in records.items() if "reply" in record]
        assert replies[: len(answered)] == answered
        assert len(server.requests) - before == len(replies) - len(answered)
    ended = json.loads(call("show", run_id, "--json")[1])
    assert (ended["state"], ended["pause"]) == ("done", None)
    assert records["run/access/0001"]["access"]["key_env"] == "ANOTHER"
    assert holders(home, "sk-another-key-55") == []


@pytest.mark.usefixtures("call")
def test_a_paused_run_is_told_only_of_options_that_it_accepts(home: Path) -> None:
    away = ModelUnavailable("it is away")

    def said(run_id: str) -> str:
        return str(explained_search(away, [run_id], find_places(home, None)))

    with OpenAIServer([TALK]) as server:
        plain = search(home, server).begun(goes_on=False)
        assert said(plain).endswith("goes on, also with other --models, --base-url or --key-env")
        team = {"models": {"one": at(server)}, "ensembles": {"team": [{"model": "one"}]}}
        for name in ("one", "team"):
            own = search(home, server, name, access=ModelAccess.model_validate(team)).begun(goes_on=False)
            assert said(own).endswith(f"`evolvarium resume {own}` goes on, also with other --models")
        file = GivenAccess(file=ModelFile.model_validate({"models": {f"openai/{MODEL}": at(server)}}))
        with RunStore(home).open(plain) as journal:
            record_access(journal, access_in_force(journal, ModelAccess()), file.over())
        assert said(plain).endswith("goes on, also with other --models")


def test_a_resume_with_a_file_that_names_none_of_its_models_is_refused(call: Call, home: Path, tmp_path: Path) -> None:
    with OpenAIServer([TALK]) as server:
        run_id = search(home, server).begun(goes_on=False)
        file = tmp_path / "models.yaml"
        file.write_text(yaml.safe_dump({"models": {"openai/other": at(server)}}))
        code, _, err = call("resume", run_id, "--models", str(file))
    assert code == 2
    assert f"it names 'openai/other', and asked are 'openai/{MODEL}'" in err


def test_a_run_whose_model_was_renamed_goes_on_under_its_old_name(call: Call, home: Path) -> None:
    def renamed_after_two(_: Received) -> Turn:
        if len(server.requests) == 2:
            server.models = ("new-name",)
        return TALK

    with OpenAIServer(renamed_after_two) as server:
        mine = search(home, server)
        run_id = mine.begun()
        assert json.loads(call("show", run_id, "--json")[1])["state"] == "paused"
        code, _, err = call("resume", run_id)
        assert code == 3
        assert "new-name" in err
        file = ModelFile.model_validate({"models": {f"openai/{MODEL}": at(server, "new-name")}})
        mine.resumed(run_id, GivenAccess(file=file))
    ended = json.loads(call("show", run_id, "--json")[1])
    assert (ended["state"], ended["model"]) == ("done", f"openai/{MODEL}")


def test_an_ensemble_shares_a_run_and_each_member_has_its_own_line_in_the_ledger(call: Call, home: Path) -> None:
    with OpenAIServer([TALK], models=("a", "b")) as server:
        access = ModelAccess.model_validate(
            {
                "models": {"one": at(server, "a"), "two": at(server, "b")},
                "ensembles": {"team": [{"model": "one"}, {"model": "two", "weight": 2}]},
            }
        )
        run_id = search(home, server, "team", access=access).begun()
        asked = [request.body["model"] for request in server.requests]
    assert set(asked) == {"a", "b"}
    shown = json.loads(call("show", run_id, "--json")[1])
    assert (shown["state"], shown["model"]) == ("done", "team")
    by_model = dict.fromkeys(("one", "two"), 0)
    for line in shown["ledger"]:
        by_model[line["model"]] += line["requests"]
    assert by_model == {"one": asked.count("a"), "two": asked.count("b")}


def test_a_limit_in_dollars_is_kept_with_the_price_that_was_given(call: Call, home: Path) -> None:
    with OpenAIServer([Turn(text="So much to say.", output_tokens=30_000)]) as server:
        access = GivenAccess(base_url=server.url, key_env=VARIABLE, price=price_given("1/10")).over()
        run_id = search(home, server, access=access, budget_usd="0.90").begun()
    shown = json.loads(call("show", run_id, "--json")[1])
    assert shown["state"] == "budget-spent"
    assert 0.6 <= shown["usage"]["usd"] <= 0.9


@pytest.mark.usefixtures("call")
def test_a_walk_through_an_ended_run_makes_the_same_requests_of_nobody(home: Path) -> None:
    with OpenAIServer([TALK]) as server:
        mine = search(home, server)
        run_id = mine.begun()
    before = mine.records(run_id)
    with RunStore(home).open(run_id) as journal:
        opening = ready_models(
            mine.choices.access,
            mine.policy,
            [(ModelRole.AGENT, mine.choices.model)],
            in_usd=False,
            token=CancelToken(),
            note=lambda _: None,
            context_tokens={mine.choices.model: before["run"]["context_tokens"]},
            asks=False,
        )
        with opening as models:
            mine.go_on(run_id, journal, models.find(mine.choices.model, ModelRole.AGENT))
    assert mine.records(run_id) == before


@pytest.mark.parametrize("model", [f"openai/{MODEL}", "team"])
def test_a_recorded_run_replays_exactly_without_key_or_server(
    call: Call, home: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer([TALK]) as server:
        team = {
            "models": {"one": {**at(server), "context_tokens": 20_000}},
            "ensembles": {"team": [{"model": "one"}, {"model": f"openai/{MODEL}"}]},
        }
        here = {"base_url": server.url, "key_env": VARIABLE}
        access = ModelAccess.model_validate({**here, **(team if model == "team" else {})})
        run_id = search(home, server, model, access=access).begun()
    monkeypatch.delenv(VARIABLE)
    before = json.loads(call("show", run_id, "--json")[1])
    code, out, err = call("run", TASK, "--model", f"replay/{run_id}", "--json")
    assert code == 0, err
    after = json.loads(out)
    same = ("state", "requests", "usage", "stops", "best", "initial")
    assert {part: after[part] for part in same} == {part: before[part] for part in same}
    assert after["requests"] > 0
    code, out, err = call("run", TASK, "--model", f"replay/{after['run']}", "--json")
    assert code == 0, err
    assert json.loads(out)["usage"] == before["usage"]
