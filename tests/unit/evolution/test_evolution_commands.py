"""`sql evolve`, `final` and `resume` from the command line without an engine: wrong input is told before all else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.robophd.choices import DatasetChoice, EvolveChoices
from orchestrator.bootstrap.robophd.final import FinalRequest, score_final
from orchestrator.bootstrap.robophd.packages import initial_packages
from orchestrator.bootstrap.robophd.running import Watch, begin_evolution, header_of_run, performed
from orchestrator.bootstrap.robophd.site import PURPOSES, required_policy
from orchestrator.bootstrap.sql.choices import Layout
from orchestrator.errors import InputError, PolicyError, RunStateError
from orchestrator.methods.robophd.run import RUN_END
from orchestrator.methods.robophd.settings import Settings
from orchestrator.runtime.workers import CancelToken
from tests.command_line import ROOT
from tests.evolution_data import write_list
from tests.in_process import Call, without_engine
from tests.recorded_evolution import RecordedEvolutions

EVOLVE = ("sql", "evolve")


@pytest.fixture(scope="module")
def evolutions(tmp_path_factory: pytest.TempPathFactory) -> RecordedEvolutions:
    return RecordedEvolutions(tmp_path_factory.mktemp("evolutions"))


@pytest.fixture(scope="module")
def run_id(evolutions: RecordedEvolutions) -> str:
    return evolutions.made()


@pytest.fixture
def call(evolutions: RecordedEvolutions, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return without_engine(evolutions.home, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "no data are given; give --spider DIR, --bird DIR, --jsonl FILE"),
        (("--jsonl", ""), "a path is empty"),
        (("--jsonl", "LIST", "--evolver-model", "gpt"), "no model 'gpt'"),
        (("--jsonl", "LIST", "--answer-model", ""), "no model ''"),
        (("--jsonl", "LIST", "--policy", "nobody"), "no policy 'nobody'"),
        (("--jsonl", "LIST", "--set", "elo.kk=1"), "did you mean 'elo.k'?"),
        (("--jsonl", "LIST", "--seed", "1", "--set", "seed=2"), "'seed' is given twice"),
        (("--jsonl", "LIST", "--query-seconds", "nan"), "--query-seconds"),
        (("--jsonl", "LIST", "--package", "nowhere"), "cannot read the package '"),
        (("--config", "nowhere.yaml"), "cannot read the configuration"),
        (("--branch", "RUN"), "--branch RUN and --from-iteration N belong together"),
        (("--from-iteration", "2"), "--branch RUN and --from-iteration N belong together"),
        (
            ("--branch", "RUN", "--from-iteration", "2", "--bird", "x", "--policy", "default"),
            "a branch keeps data, packages, models and policy of its run; leave out --bird, --policy",
        ),
        (("--branch", "abcdefabcdef", "--from-iteration", "2"), "no run"),
        (("--branch", "RUN", "--from-iteration", "2", "--set", "elo.k=1"), "a branch keeps the settings 'elo'"),
        (("--run-id-file", "/dev/null/x", "--jsonl", "LIST"), "/dev/null/x"),
    ],
)
def test_wrong_input_is_told_and_makes_no_run(
    evolutions: RecordedEvolutions, run_id: str, call: Call, arguments: tuple[str, ...], told: str
) -> None:
    given = {"RUN": run_id, "LIST": str(evolutions.questions)}
    before = evolutions.store.list()
    code, out, err = call(*EVOLVE, *(given.get(argument, argument) for argument in arguments))
    assert (code, out) == (2, ""), err
    assert told in err
    assert "Traceback" not in err
    assert evolutions.store.list() == before


def test_without_an_engine_a_run_a_branch_and_a_final_score_are_a_missing_prerequisite(
    evolutions: RecordedEvolutions, run_id: str, call: Call
) -> None:
    for arguments in (
        (*EVOLVE, "--jsonl", str(evolutions.questions)),
        (*EVOLVE, "--branch", run_id, "--from-iteration", "2", "--budget-tokens", "5", "--workers", "1"),
        ("final", run_id),
    ):
        code, _, err = call(*arguments)
        assert code == 3, err


def test_a_run_that_is_done_is_shown_when_it_is_resumed(run_id: str, call: Call) -> None:
    code, out, err = call("resume", run_id, "--json")
    assert code == 0
    assert f"run {run_id} is done already" in err
    assert json.loads(out) == {**json.loads(call("show", run_id, "--json")[1]), "containers_left": None}
    code, _, err = call("resume", run_id, "--accept-policy-change")
    assert (code, "an evolution of packages are one measurement" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--agent", "p99"), "the run has no package 'p99'; there are naive, p02"),
        (("--model", "gpt"), "no model 'gpt'"),
        (("--budget-usd", "nan"), "--budget-usd"),
    ],
)
def test_final_names_what_is_not_there(run_id: str, call: Call, arguments: tuple[str, ...], told: str) -> None:
    code, _, err = call("final", run_id, *arguments)
    assert code == 2
    assert told in err


def test_final_databases_stay_shut_until_the_run_has_ended(evolutions: RecordedEvolutions) -> None:
    site = evolutions.site()
    unfinished, journal = evolutions.store.create()
    with journal:
        journal.put("run", header_of_run(site, initial_packages(()), ()))
        journal.put(RUN_END, {"ending": "iterations", "champion": "naive", "selected": []})
    watch = Watch(token=CancelToken(), note=evolutions.notes.append)
    with pytest.raises(RunStateError, match="has not ended, and final databases are opened only"):
        score_final(evolutions.places, unfinished, FinalRequest(), watch)
    evolutions.store.remove(unfinished)


@pytest.mark.parametrize("purpose", [purpose.value for purpose in PURPOSES])
def test_a_policy_without_a_grant_that_is_needed_is_refused_before_anything_is_opened(
    tmp_path: Path, purpose: str
) -> None:
    document = yaml.safe_load((ROOT / "policies" / "default.yaml").read_text())
    del document["purposes"][purpose]
    policy = tmp_path / "own.yaml"
    policy.write_text(yaml.safe_dump(document))
    places = find_places(tmp_path / "home", None)
    data = DatasetChoice(kind=Layout.JSONL, root=str(write_list(tmp_path / "data")))
    choices = EvolveChoices(datasets=(data,), policy=str(policy))
    with pytest.raises(PolicyError, match=f"grants no '{purpose}'"):
        required_policy(places, choices)
    with pytest.raises(PolicyError, match=f"grants no '{purpose}'"):
        begin_evolution(places, choices, Settings(), Watch(token=CancelToken(), note=lambda _: None))
    assert not (tmp_path / "home").exists()


def test_help_names_what_resume_goes_on_with(call: Call) -> None:
    out = call("resume", "--help")[1]
    assert "`sql evolve`" in " ".join(out.split())


def test_a_part_without_a_question_that_can_be_evaluated_ends_the_run_with_why_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evolutions = RecordedEvolutions(tmp_path)
    (select,) = evolutions.site().split.select
    lines = [json.loads(line) for line in evolutions.questions.read_text().splitlines()]
    broken = [{**line, "gold": "SELECT x FROM nowhere"} if line["database"] == select else line for line in lines]
    evolutions.questions.write_text("".join(json.dumps(line) + "\n" for line in broken))
    site, packages = evolutions.site(), initial_packages(())
    run_id, journal = evolutions.store.create()
    watch = Watch(token=CancelToken(), note=evolutions.notes.append)
    journal.put("run", header_of_run(site, packages, ()))
    with journal, pytest.raises(InputError) as error:
        performed(site, packages, (), run_id, journal, watch)
    assert f"none of the questions on {select} can be evaluated, so there are none for selection" in str(error.value)
    assert f"`evolvarium show {run_id}` says why of each" in str(error.value)
    call = without_engine(evolutions.home, monkeypatch, capsys)
    document = json.loads(call("show", run_id, "--json")[1])
    assert {one["database"] for one in document["left_out"]} == {select}
    assert {one["reason"] for one in document["left_out"]} == {"no such table: nowhere"}
