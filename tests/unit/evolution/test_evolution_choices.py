"""What an evolution is asked for: the configuration file, settings by name, and models; every mistake is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.bootstrap.model_names import name_in_records, offline_model, require_name
from orchestrator.bootstrap.robophd.choices import DatasetChoice, EvolveChoices
from orchestrator.bootstrap.robophd.config_file import load_file, setting_names, settings_from
from orchestrator.bootstrap.sql.choices import Layout
from orchestrator.cli.evolution_options import assigned
from orchestrator.domain.model_access import ModelAccess
from orchestrator.domain.policies import Runtime
from orchestrator.errors import InputError
from orchestrator.methods.robophd.settings import Strategy

WHOLE = """
datasets:
  - {kind: spider, root: spider}
  - {kind: jsonl, root: lists/questions.jsonl, databases: [a, b]}
shares: [2, 1, 1]
packages: [packages/careful]
evolver: offline/effort-0.5
policy: own.yaml
runtime: runsc
query_seconds: 5
budget: {usd: 1.5, tokens: 1000}
workers: 2
papers: [paper.txt]
settings:
  iterations: 12
  schedule: {strategies: {research-driven: 1}}
"""
DATA = "datasets: [{kind: bird, root: bird}]\n"


def write(folder: Path, text: str) -> Path:
    for name in ("bird", "x", "spider", "lists", "packages/careful"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in ("lists/questions.jsonl", "own.yaml"):
        (folder / name).touch()
    path = folder / "evolution.yaml"
    path.write_text(text)
    return path


def test_a_file_says_all_of_it_and_its_paths_hold_wherever_a_run_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "paper.txt").write_text("Link schemas first.")
    write(tmp_path, WHOLE)
    monkeypatch.chdir(tmp_path)
    choices, fields = load_file(Path("evolution.yaml"))
    assert [one.root for one in choices.datasets] == [
        str(tmp_path / "spider"),
        str(tmp_path / "lists/questions.jsonl"),
    ]
    assert choices.packages == (str(tmp_path / "packages/careful"),)
    assert choices.policy == str(tmp_path / "own.yaml")
    assert (choices.shares, choices.runtime, choices.workers) == ((2, 1, 1), Runtime.RUNSC, 2)
    assert choices.branch is None
    settings = settings_from(fields)
    assert settings.papers == ("Link schemas first.",)
    assert settings.iterations == 12
    assert EvolveChoices.model_validate(choices.model_dump(mode="json")) == choices


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "begins with `datasets`"),
        ('datasets: [{kind: jsonl, root: "a\\0"}]\n', "a path holds no NUL character"),
        ("- 1\n", "begins with `datasets`"),
        ("settings: {seed: 1}\n", "`datasets` is missing"),
        ("datasets: []\n", "`datasets`"),
        ("datasets: [{kind: oracle, root: x}]\n", "`datasets.0.kind` is 'oracle'"),
        ("datasets: [{kind: bird}]\n", "`datasets.0.root` is missing"),
        ("datasets: [{kind: bird, root: ''}]\n", "`datasets.0.root`"),
        ("datasets: [{kind: bird, root: x, gold: y}]\n", "`datasets.0.gold` is not a key that is known here"),
        (DATA + "shares: [7, 3]\n", "`shares"),
        (DATA + "shares: [7, 0, 3]\n", "`shares.1` is 0"),
        (DATA + "budget: {usd: -1}\n", "`budget.usd` is -1"),
        (DATA + "workers: 0\n", "`workers` is 0"),
        (DATA + "query_seconds: 1000\n", "`query_seconds` is 1000"),
        (DATA + "query_seconds: .nan\n", "`query_seconds`"),
        (DATA + "seed: 1\n", "`seed` is not a key that is known here"),
        (DATA + "branch: {run: a, from_iteration: 2}\n", "`branch` is not a key that is known here"),
        (DATA + "settings: {papers: [x]}\n", "papers are files, so they stand beside `settings`"),
        (DATA + "settings: {seed: yes}\n", "`settings.seed` is True: no truth value has a meaning here"),
        (DATA + "databases: 1\ndatabases: 2\n", "databases"),
        (DATA + "papers: [gone.txt]\n", "cannot read the paper"),
        (DATA + "papers: [latin.txt]\n", "is not UTF-8 at byte 0"),
    ],
)
def test_every_mistake_in_a_file_is_named(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "latin.txt").write_bytes(b"\xe9t\xe9")
    with pytest.raises(InputError) as error:
        load_file(write(tmp_path, text))
    assert told in str(error.value)


def test_all_mistakes_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    many = "".join(f"unknown{number}: 1\n" for number in range(7))
    with pytest.raises(InputError) as error:
        load_file(write(tmp_path, DATA + many))
    assert [f"`unknown{number}`" in str(error.value) for number in range(7)] == [True] * 5 + [False] * 2
    assert str(error.value).endswith("; and 2 more")


def test_all_paths_where_nothing_lies_are_told_at_once(tmp_path: Path) -> None:
    text = (
        "datasets: [{kind: bird, root: gone/bird}, {kind: spider, root: spider}]\n"
        "packages: [packages/careful, gone/package]\npolicy: gone.yaml\npapers: [gone.txt, own.yaml]\n"
    )
    path = write(tmp_path, text)
    with pytest.raises(InputError) as error:
        load_file(path)
    missing = [
        ("data set", "gone/bird"),
        ("package", "gone/package"),
        ("policy", "gone.yaml"),
        ("paper", "gone.txt"),
    ]
    told = "; ".join(f"cannot read the {what} '{tmp_path / name}'" for what, name in missing)
    assert str(error.value).startswith(f"{path}: {told}: nothing lies there")


def test_a_path_that_is_replaced_need_not_be_there(tmp_path: Path) -> None:
    path = write(tmp_path, "datasets: [{kind: bird, root: gone}]\npackages: [gone]\nworkers: 3\n")
    data = DatasetChoice(kind=Layout.BIRD, root=str(tmp_path / "bird"))
    choices, _ = load_file(path, {"datasets": (data,), "packages": (str(tmp_path / "packages/careful"),)})
    assert choices.datasets == (data,)
    assert choices.packages == (str(tmp_path / "packages/careful"),)
    assert choices.workers == 3


def test_a_file_that_is_not_there_is_wrong_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the configuration"):
        load_file(tmp_path / "gone.yaml")
    with pytest.raises(InputError, match="cannot read the configuration"):
        load_file(tmp_path)


def test_a_named_setting_counts_instead_of_the_files(tmp_path: Path) -> None:
    _, fields = load_file(write(tmp_path, DATA + "settings: {iterations: 9, elo: {k: 10, scale: 100}}\n"))
    settings = settings_from(fields, [assigned("elo.k=16"), assigned("schedule.strategies.refinement=2")])
    assert (settings.iterations, settings.elo.k, settings.elo.scale) == (9, 16, 100)
    assert settings.schedule.strategies == {Strategy.CROSS_POLLINATION: 1, Strategy.REFINEMENT: 2}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["elo.k"], "'elo.k' is not NAME=VALUE"),
        (["=1"], "'=1' is not NAME=VALUE"),
        (["k=1"], "there is no setting 'k'; did you mean 'elo.k'?"),
        (["iteration=1"], "did you mean 'iterations'?"),
        (["schedule.late_stag=1"], "did you mean 'schedule.late_stage'?"),
        (["schedule.strategies.refine=1"], "did you mean 'schedule.strategies.refinement'?"),
        (["zzz=1"], "there is no setting 'zzz'; docs/robophd.md lists them all"),
        (["elo=1"], "'elo' has parts; give one of elo.start, elo.k, elo.scale, elo.order"),
        (["elo.k.x=1"], "there is no setting 'elo.k.x'"),
        (["papers=[]"], "'papers' are files"),
        (["elo.k=1", "elo.k=2"], "'elo.k' is given twice"),
        (["elo.k=0"], "`elo.k` is 0: must be greater than 0"),
        (["elo.k=NaN"], "`elo.k`"),
        (["elo.order=random"], "`elo.order` is 'random'"),
        (["seed=true"], "no truth value has a meaning here"),
        (["seed=1e400"], "`seed`"),
        (["schedule.challenger=0.9", "schedule.none=0.2"], "more than 1 together"),
        (["schedule.strategies.research-driven=1"], "needs papers"),
        (
            ["schedule.strategies.research-driven=1"],
            "settings: the strategy research-driven needs papers; name files under `papers:` in a --config file",
        ),
        (
            ["schedule.strategies.luck=1"],
            ".luck'; the strategies are cross-pollination, refinement, research-driven, error-focused",
        ),
        (["shares=[1, 1, 1]"], "'shares' is no setting but a key of the configuration file, beside its `settings`"),
        (["budget.usd=1"], "'budget.usd' is no setting but a key of the configuration file"),
        (["evolver=offline"], "'evolver' has parts"),
    ],
)
def test_every_mistake_in_a_named_setting_is_told(given: list[str], told: str) -> None:
    with pytest.raises(InputError) as error:
        settings_from({}, list(map(assigned, given)))
    assert told in str(error.value)


def test_every_setting_can_be_named() -> None:
    defaults = settings_from({}).model_dump(mode="json")
    for name in setting_names():
        value = defaults
        for part in name.split("."):
            value = value[part]
        if name != "papers":
            assert settings_from({}, [(name, value)]) == settings_from({}), name


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("offline", "offline"),
        ("offline/effort-1", "offline"),
        ("offline/effort-0.50", "offline/effort-0.5"),
        ("offline/effort-0.0001", "offline/effort-0.0001"),
    ],
)
def test_a_weaker_offline_model_has_one_name(name: str, found: str) -> None:
    model = offline_model(name)
    assert model is not None
    assert model.name == found
    assert (name_in_records(name), name_in_records(found)) == (found, found)


@pytest.mark.parametrize("name", ["offline/effort-0", "offline/effort-0.00001", "offline/effort-1.5", "zebra"])
def test_other_models_are_refused_by_name(name: str) -> None:
    with pytest.raises(InputError, match="there are 'offline', 'offline/effort-E'"):
        require_name(name, ModelAccess())
