"""Commands on a recorded run: listing, showing, reporting, replaying, removing. No engine, no container."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from orchestrator.bootstrap.choices import Choices, method_settings
from orchestrator.bootstrap.header import policy_record, require_same, run_header
from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.runs import exists, new_run
from orchestrator.cli import figures
from orchestrator.cli.documents import IslandStop, OutcomeDocument, RunDocument, VerdictDocument
from orchestrator.cli.junit import junit_report
from orchestrator.cli.main import execute
from orchestrator.cli.search_endings import explained_search
from orchestrator.cli.summaries import unimproved
from orchestrator.errors import Cancelled, EvaluatorError, EvolvariumError, RunStateError, SandboxError
from orchestrator.evaluation.tasks import Task, load_task
from orchestrator.llm.offline import OfflineModel
from orchestrator.ports import Journal
from orchestrator.search.archive import Grid
from orchestrator.storage.runs import RunStore
from tests.recorded_runs import DIGEST, Recording

ROOT = Path(__file__).parents[2]
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def task() -> Task:
    return load_task(ROOT / "tasks" / "online_bin_packing")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def record(home: Path, task: Task) -> Callable[..., str]:
    """Makes a finished run without analyses, as `run` would; gives its id."""

    def make(seed: int = 1, **budget: Any) -> str:
        return Recording.of(home, task, seed=seed, **budget).made()

    return make


@pytest.fixture
def call(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command line without an engine; gives exit code, stdout and stderr."""
    monkeypatch.setenv("EVOLVARIUM_HOME", str(home))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/engine.sock")

    def run(*arguments: str) -> tuple[int, str, str]:
        code = execute(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_a_run_is_listed_and_shown(call: Call, record: Callable[..., str]) -> None:
    run_id = record()
    (entry,) = _json(call, "runs", "list")["runs"]
    assert (entry["run"], entry["state"], entry["seed"]) == (run_id, "done", 1)
    shown = _json(call, "show", run_id[:5])
    assert shown == _json(call, "show", "latest")
    assert shown["evaluations"] == 6
    assert sum(shown["endings"].values()) == 6
    assert {(verdict["id"], verdict["split"]) for verdict in shown["final"]} == {
        ("initial", "fresh"),
        (shown["best"]["id"], "fresh"),
    }
    assert shown["best"]["metrics"]["fitness"] >= shown["initial"]["metrics"]["fitness"]


def test_the_best_program_is_written_byte_for_byte_and_nothing_is_overwritten(
    call: Call, record: Callable[..., str], task: Task, tmp_path: Path
) -> None:
    record()
    target = tmp_path / "best.py"
    assert call("show", "latest", "initial", "-o", str(target))[0] == 0
    assert target.read_bytes() == task.initial["program.py"]
    code, _, err = call("show", "latest", "-o", str(target))
    assert code == 2
    assert "--force" in err
    assert call("show", "latest", "-o", str(target), "--force")[0] == 0
    best = _json(call, "show", "latest", "best")
    assert target.read_text() == best["files"][0]["text"]
    assert call("show", "latest", "best")[1].rstrip("\n") == target.read_text().rstrip("\n")


def test_an_unknown_candidate_is_wrong_input(call: Call, record: Callable[..., str]) -> None:
    record()
    code, _, err = call("show", "latest", "i9-c99")
    assert code == 2
    assert "i9-c99" in err


def test_a_link_in_the_way_is_never_followed(call: Call, record: Callable[..., str], tmp_path: Path) -> None:
    record()
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    assert call("show", "latest", "best", "-o", str(tmp_path / "link"), "--force")[0] == 2
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_report_puts_runs_side_by_side(call: Call, record: Callable[..., str], tmp_path: Path) -> None:
    first, second = record(1), record(2)
    folder = tmp_path / "report"
    document = _json(call, "report", first, second, "-o", str(folder))
    assert [column["run"]["run"] for column in document["runs"]] == [first, second]
    assert {path.name for path in folder.iterdir()} == {Path(path).name for path in document["files"]}
    assert json.loads((folder / "report.json").read_text()) == document
    assert (folder / "best_so_far.png").read_bytes().startswith(b"\x89PNG")
    assert ET.parse(folder / "grid.svg").getroot().tag.endswith("svg")  # noqa: S314 - our own file
    bests = [column["run"]["best"]["metrics"]["excess_percent"] for column in document["runs"]]
    difference = next(line for line in document["differences"] if line["split"] == "hidden")
    assert difference["points"] == pytest.approx(bests[1] - bests[0])
    curve = document["runs"][0]["curve"]
    assert curve[0][0] == 0
    assert [value for _, value in curve] == sorted((value for _, value in curve), reverse=True)
    assert curve[-1] == [6, bests[0]]
    assert call("report", first, "-o", str(folder))[0] == 2
    drawn = (folder / "grid.svg").read_bytes()
    assert call("report", first, second, "-o", str(folder), "--force")[0] == 0
    assert (folder / "grid.svg").read_bytes() == drawn


def test_the_newest_runs_have_names(call: Call, record: Callable[..., str]) -> None:
    first, second = record(1), record(2)
    assert _json(call, "show", "latest")["run"] == second
    assert _json(call, "show", "previous")["run"] == first


def test_a_replay_needs_no_engine_and_gives_the_same_archive(call: Call, record: Callable[..., str]) -> None:
    run_id = record()
    replayed = _json(call, "run", "online_bin_packing", "--model", f"replay/{run_id}")
    original = _json(call, "show", run_id)
    assert replayed["run"] != run_id
    assert replayed["containers_left"] is None
    for field in ("best", "initial", "evaluations", "analyses", "requests", "usage", "endings", "final", "stops"):
        assert replayed[field] == original[field]
    for column in _json(call, "report", run_id, replayed["run"])["differences"]:
        assert column["points"] == 0


def test_a_replay_of_another_task_is_refused(call: Call, record: Callable[..., str], tmp_path: Path) -> None:
    run_id = record()
    assert call("task", "new", "other", "--into", str(tmp_path))[0] == 0
    code, _, err = call("run", "other", "--task-root", str(tmp_path), "--model", f"replay/{run_id}")
    assert code == 2
    assert "is of task 'online_bin_packing'" in err


def test_spent_money_or_tokens_is_exit_code_4_and_the_run_is_kept(call: Call, record: Callable[..., str]) -> None:
    run_id = record(budget_tokens=84_000)
    assert _json(call, "show", run_id)["state"] == "budget-spent"
    code, out, _ = call("run", "online_bin_packing", "--model", f"replay/{run_id}")
    assert code == 4
    assert json.loads(out)["state"] == "budget-spent"


def test_removing_a_run_leaves_the_others(call: Call, record: Callable[..., str]) -> None:
    first, second = record(1), record(2)
    assert _json(call, "runs", "remove", first, "--yes")["removed"] == [first]
    assert [entry["run"] for entry in _json(call, "runs", "list")["runs"]] == [second]


def test_without_a_terminal_a_run_is_only_removed_with_yes(call: Call, record: Callable[..., str]) -> None:
    run_id = record()
    code, out, err = call("runs", "remove", "latest")
    assert (code, out) == (2, "")
    assert run_id in err
    assert "--yes" in err
    assert [entry["run"] for entry in _json(call, "runs", "list")["runs"]] == [run_id]


def test_a_replay_writes_its_id_to_a_file(call: Call, record: Callable[..., str], tmp_path: Path) -> None:
    record()
    file = tmp_path / "id"
    replayed = _json(call, "run", "online_bin_packing", "--model", "replay/latest", "--run-id-file", str(file))
    assert file.read_text() == f"{replayed['run']}\n"


def test_a_migration_interval_becomes_part_of_the_record(call: Call, home: Path, task: Task) -> None:
    assert "--migration-interval" in call("run", "--help")[1]
    by_default = task.spec.islands.migration_interval
    for chosen, interval in ((3, 3), (None, by_default)):
        settings = method_settings(task.spec, migration_interval=chosen)
        in_force = policy_record(find_policy(find_places(home, None), "default"), lambda _: DIGEST)
        header = run_header(settings, task, OfflineModel(), Choices(task=task.name), in_force)
        assert header["settings"]["migration_interval"] == interval


def test_a_report_says_in_words_which_run_is_better(call: Call, record: Callable[..., str]) -> None:
    first, second = record(1), record(2)
    points = _json(call, "report", first, second)["differences"][0]["points"]
    assert points != 0
    words = {f"better by {abs(points):.6g} points", f"worse by {abs(points):.6g} points"}
    there, back = (call("report", *order)[1] for order in ((first, second), (second, first)))
    (said,) = [word for word in words if word in there]
    assert said.startswith("better") == (points > 0)
    assert (words - {said}).pop() in back


def test_what_is_written_makes_its_folder(call: Call, record: Callable[..., str], tmp_path: Path) -> None:
    record()
    target = tmp_path / "missing" / "deeper" / "best.py"
    assert call("show", "latest", "best", "-o", str(target))[0] == 0
    assert target.is_file()
    assert call("report", "latest", "-o", str(tmp_path / "other" / "report"))[0] == 0
    assert (tmp_path / "other" / "report" / "report.md").is_file()


def test_a_report_is_a_page_with_a_title_sections_and_pictures(
    call: Call, record: Callable[..., str], tmp_path: Path
) -> None:
    record()
    assert call("report", "latest", "-o", str(tmp_path / "report"))[0] == 0
    page = (tmp_path / "report" / "report.md").read_text()
    titles = [line for line in page.splitlines() if line.startswith("#")]
    assert titles[0] == "# Report on online_bin_packing"
    assert all(title.startswith("## ") for title in titles[1:])
    for name in re.findall(r"!\[.*?\]\((.*?)\)", page):
        assert (tmp_path / "report" / name).is_file()
    assert page.count("![") == 2
    assert "excess over the L2 bound so far (%)" in (tmp_path / "report" / "best_so_far.svg").read_text()


def test_no_endings_are_a_dash(call: Call, home: Path, task: Task) -> None:
    with new_run(RunStore(home)) as (_, journal):
        _begin(journal, home, task)
    line = next(line for line in call("report", "latest")[1].splitlines() if line.strip().startswith("endings"))
    assert line.split() == ["endings", "-"]


def test_a_run_that_fails_before_anything_is_recorded_is_not_kept(home: Path, task: Task) -> None:
    store = RunStore(home)

    def failed(error: EvolvariumError, *keys: str) -> str:
        """Id of a run that recorded its header and these, and then failed."""
        ids = []

        def fail() -> None:
            with new_run(store) as (run_id, journal):
                ids.append(run_id)
                _begin(journal, home, task)
                for key in keys:
                    journal.put(key, {})
                raise error

        with pytest.raises(type(error)):
            fail()
        return ids[0]

    assert not exists(store, failed(EvaluatorError("broken")))
    assert store.list() == ()
    kept = {failed(Cancelled("stop")), failed(EvaluatorError("broken"), "initial")}
    assert {info.id for info in store.list()} == kept


def test_what_can_be_done_after_a_failure_is_said_truthfully(home: Path, task: Task) -> None:
    places = find_places(home, None)
    with new_run(RunStore(home)) as (run_id, journal):
        _begin(journal, home, task)
    said = str(explained_search(EvaluatorError("broken"), [run_id], places))
    assert f"`evolvarium resume {run_id}` goes on; if you change the evaluator, start a new run" in said
    assert f"continue it with `evolvarium resume {run_id}`" in str(
        explained_search(SandboxError("x"), [run_id], places)
    )
    gone = str(explained_search(EvaluatorError("broken"), ["000000000000"], places))
    assert gone == "broken; nothing was recorded of the run, so none is kept: start it again"


def _stopped(document: RunDocument, *reasons: str, evaluations: int) -> str:
    """What is said of a run that found nothing and whose islands stopped for this."""
    assert document.best is not None
    still = {
        "best": document.best.model_copy(update={"id": "initial"}),
        "stops": [IslandStop(island=number, reason=reason) for number, reason in enumerate(reasons)],
        "evaluations": evaluations,
    }
    (said,) = unimproved(document.model_copy(update=still))
    return said


def test_a_best_that_is_the_initial_program_is_explained(call: Call, record: Callable[..., str]) -> None:
    run_id = record()
    document = RunDocument.model_validate(_json(call, "show", run_id))
    assert unimproved(document) == []
    assert _stopped(document, "commits", "commits", evaluations=4) == (
        "The best is the initial program: no candidate beat it. More --commits, or another --seed, may find one."
    )


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("requests", "--requests"),
        ("idle", "stopped calling tools: ask another --model"),
        ("context", "context was too small"),
        ("budget-spent", "spent before the first commit: `evolvarium estimate run online_bin_packing`"),
    ],
)
def test_the_advice_after_a_run_without_commits_fits_how_it_ended(
    call: Call, record: Callable[..., str], reason: str, advice: str
) -> None:
    document = RunDocument.model_validate(_json(call, "show", record()))
    said = _stopped(document, reason, evaluations=0)
    assert said.startswith("The best is the initial program: no new program was committed. The ")
    assert advice in said
    assert "--commits" not in said
    both = _stopped(document, reason, "commits", reason, evaluations=2)
    assert "no candidate beat it" in both
    assert both.count("--commits, or another --seed") == 1


def test_with_json_a_candidate_is_shown_without_a_table(call: Call, record: Callable[..., str]) -> None:
    record()
    assert call("show", "latest", "initial", "--json")[2] == ""
    table = call("show", "latest", "initial")[2]
    assert re.search(r"parents +-$", table, re.MULTILINE)


def test_a_grid_of_one_feature_is_a_row_without_a_second_axis() -> None:
    grid = Grid[str](bins=[4])
    for occupant, fitness, feature in (("a", 0.936836, 0.1), ("b", 0.936842, 0.9)):
        grid.offer(occupant, fitness=fitness, features=[feature])
    figure = figures.grids({"island 0": grid}, ["size"])
    figure.draw_without_rendering()
    assert figure.axes[1].yaxis.get_offset_text().get_text() == ""
    assert list(figure.axes[0].get_yticks()) == []
    assert figure.axes[0].get_ylabel() == ""


def test_a_damaged_run_is_listed_as_unreadable(call: Call, home: Path, record: Callable[..., str]) -> None:
    run_id = record()
    (home / "runs" / run_id / "journal.sqlite").write_bytes(b"not a database")
    (entry,) = _json(call, "runs", "list")["runs"]
    assert entry["state"] == "unreadable"
    assert call("show", run_id)[0] == 2


def test_a_run_that_has_not_ended_is_shown_as_unfinished(call: Call, home: Path, task: Task) -> None:
    with new_run(RunStore(home)) as (run_id, journal):
        _begin(journal, home, task)
    shown = _json(call, "show", run_id)
    assert (shown["state"], shown["best"], shown["evaluations"]) == ("unfinished", None, 0)
    assert _json(call, "report", run_id)["runs"][0]["curve"] == []


def test_a_changed_policy_image_or_task_stops_a_resume(home: Path, record: Callable[..., str], task: Task) -> None:
    run_id = record()
    places = find_places(home, None)
    same = policy_record(find_policy(places, "default"), lambda _: DIGEST)
    strict = policy_record(find_policy(places, "strict"), lambda _: DIGEST)
    rebuilt = policy_record(find_policy(places, "default"), lambda _: "sha256:" + 64 * "1")
    with RunStore(home).open(run_id) as journal:
        require_same(journal, task, same)
        with pytest.raises(RunStateError, match=r"image '\w+' has changed"):
            require_same(journal, task, rebuilt)
        with pytest.raises(RunStateError, match="--accept-policy-change"):
            require_same(journal, task, strict)
        require_same(journal, task, strict, accept_policy_change=True)
        require_same(journal, task, strict)
        with pytest.raises(RunStateError, match="policy 'strict' has changed"):
            require_same(journal, task, same)
        with pytest.raises(RunStateError, match="changed since the run began: evaluator"):
            require_same(journal, _with_other_evaluator(task), strict)


def test_budgets_are_split_equally_among_islands() -> None:
    budget = Choices(task="t", budget_usd="1", budget_tokens=10).budget_per_island(3)
    assert budget.usd is not None
    assert 3 * budget.usd <= 1
    assert budget.tokens == 3


@pytest.mark.parametrize(("failure", "passed"), [(None, True), (None, False), ("timeout", False)])
def test_a_junit_report_says_whether_the_program_passed(failure: str | None, passed: bool) -> None:
    document = VerdictDocument.model_validate(
        {
            "task": "t",
            "program": "\x1b[31m##[command]p.py",
            "digest": DIGEST,
            "split": "hidden",
            "metrics": None if failure else {"excess_percent": 5.0},
            "failure": None
            if failure is None
            else {"ending": failure, "exception": None, "file": None, "line": None, "message": None},
            "secret": True,
            "outcome": OutcomeDocument(
                ending="ok", exit_code=0, wall_seconds=1, cpu_seconds=None, memory_peak_bytes=None, detail=""
            ).model_dump(),
            "fingerprint": {},
            "threshold": 4.0,
            "passed": passed,
        }
    )
    suite = ET.fromstring(junit_report(document, "excess_percent"))  # noqa: S314 - our own text
    case = suite.find("testcase")
    assert case is not None
    assert suite.get("failures") == ("0" if passed else "1")
    assert (case.find("failure") is None) == passed
    assert "##[" not in str(case.get("name"))


def _begin(journal: Journal, home: Path, task: Task) -> None:
    """Record what a run begins with, and nothing else."""
    in_force = policy_record(find_policy(find_places(home, None), "default"), lambda _: DIGEST)
    journal.put("run", run_header(method_settings(task.spec), task, OfflineModel(), Choices(task=task.name), in_force))


def _with_other_evaluator(task: Task) -> Task:
    return Task(
        folder=task.folder,
        spec=task.spec,
        description=task.description,
        initial=task.initial,
        evaluator={**task.evaluator, "evaluate.py": b"# other"},
        public=task.public,
    )


def _json(call: Call, *arguments: str) -> dict[str, Any]:
    code, out, err = call(*arguments, "--json")
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


ODD = {
    "no verdict": ("initial", lambda record: record | {"verdict": None}),
    "a number for the task": ("run", lambda record: record | {"task": 5}),
    "text for the islands": ("run", lambda record: record | {"settings": record["settings"] | {"islands": "x"}}),
    "no files": ("i0/commit/c01", lambda record: record | {"files": 3}),
    "no reply": ("i0/request/0001", lambda record: {"reply": []}),  # noqa: ARG005 - nothing of it is kept
}


@pytest.mark.parametrize(("key", "change"), ODD.values(), ids=ODD)
def test_a_record_of_an_odd_shape_is_named_and_spoils_no_other_run(
    record: Callable[..., str], call: Call, home: Path, key: str, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    sound, odd = record(1), record(2)
    with sqlite3.connect(home / "runs" / odd / "journal.sqlite") as database:
        (text,) = database.execute("SELECT record FROM records WHERE key = ?", [key]).fetchone()
        changed = json.dumps(change(json.loads(text)), separators=(",", ":"))
        digest = "sha256:" + hashlib.sha256(changed.encode()).hexdigest()
        database.execute("UPDATE records SET record = ?, digest = ? WHERE key = ?", [changed, digest, key])
    database.close()
    code, out, _ = call("runs", "list", "--json")
    assert code == 0
    problems = {run["run"]: run.get("problem") for run in json.loads(out)["runs"]}
    assert problems[sound] is None
    assert odd in problems[odd]
    assert repr(key) in problems[odd]
    assert call("show", odd)[0] == 2


def test_the_newest_run_is_named_where_it_is_damaged(record: Callable[..., str], call: Call, home: Path) -> None:
    run_id = record()
    journal = home / "runs" / run_id / "journal.sqlite"
    journal.write_bytes(journal.read_bytes()[:2000])
    code, _, err = call("show", "latest")
    assert code == 2
    assert f"run {run_id} cannot be" in err
