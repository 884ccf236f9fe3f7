"""The page of `report`: everything is on it, hostile text is only text, and it has a fixed size."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

from orchestrator.cli.report_page import MAX_PAGE_BYTES, report_page
from orchestrator.cli.report_page.rows import run_data
from orchestrator.cli.report_page.texts import TextPool
from orchestrator.evaluation.tasks import Task, load_task
from orchestrator.storage.runs import RunStore
from tests.in_process import without_engine
from tests.recorded_runs import Recording
from tests.report_lab import HOSTILE, RUN, Elements, Generated, data_of, generated, page_of, page_run, texts_of

ROOT = Path(__file__).parents[2]
SECTIONS = ("summary", "progress", "grids", "candidates", "lineage", "analyses", "spend", "endings", "disclosure")


@pytest.fixture(scope="module")
def task() -> Task:
    return load_task(ROOT / "tasks" / "online_bin_packing")


@pytest.fixture(scope="module")
def page(task: Task, tmp_path_factory: pytest.TempPathFactory) -> str:
    home = tmp_path_factory.mktemp("home")
    return page_of(generated(task, home, Generated(lost=True)), home)


@pytest.fixture(scope="module")
def hostile(task: Task, tmp_path_factory: pytest.TempPathFactory) -> str:
    home = tmp_path_factory.mktemp("hostile")
    return page_of(generated(task, home, Generated(words=HOSTILE, printed=HOSTILE, extra=HOSTILE)), home)


def without_tags(part: str) -> str:
    return re.sub(r"<[^>]*>", " ", part)


def section(page: str, name: str) -> str:
    found = re.search(rf'<section id="run0-{name}".*?</section>', page, re.DOTALL)
    assert found is not None, name
    return found[0]


@pytest.mark.parametrize("name", SECTIONS)
def test_every_part_is_there_and_can_be_reached(page: str, name: str) -> None:
    assert f'href="#run0-{name}"' in page
    assert "<h3>" in section(page, name)


def test_the_summary_says_what_was_found_and_under_which_conditions(page: str, task: Task) -> None:
    summary = without_tags(section(page, "summary"))
    quality = task.spec.quality
    for said in (quality.label, quality.unit, "lower is better", "hidden", "fresh", "guided the search", "secret data"):
        assert said in summary, said
    for digest in ("policy digest", "image python", "sha256:"):
        assert digest in summary, digest
    assert "migration interval" in summary


def test_curves_and_grids_are_pictures_without_a_script(page: str) -> None:
    progress = section(page, "progress")
    assert progress.count('class="picture curves"') == 2
    assert "against evaluations" in progress
    assert "against US dollars" in progress
    grids = section(page, "grids")
    assert grids.count('class="picture map"') == 2
    assert re.search(r'<rect [^>]*class="cell q\d+" data-id="i\d-c\d\d"[^>]*aria-label="[^"]+"', grids)


def test_a_run_that_costs_nothing_is_drawn_against_its_tokens(task: Task, tmp_path: Path) -> None:
    for usd in (Decimal(0), None):
        page = page_of(generated(task, tmp_path, Generated(usd=usd, commits=2)), tmp_path)
        assert "against tokens" in section(page, "progress")


def test_the_lineage_names_parents_and_the_migrations_that_showed_them(page: str) -> None:
    lineage = section(page, "lineage")
    assert 'class="picture lineage"' in lineage
    assert "shown by migration 1" in without_tags(lineage)
    assert "What led to the best" in lineage


def test_lost_calls_stand_apart_from_answered_ones(page: str) -> None:
    spend = without_tags(section(page, "spend"))
    assert "Answered requests" in spend
    assert "Calls whose outcome nobody knows" in spend
    assert "0.5000" in spend
    assert "island 1" in spend


def test_endings_are_counted_and_failures_listed(page: str) -> None:
    (run,) = data_of(page)["runs"]
    failed = [row[0] for row in run["commits"] if row[3] is None]
    assert failed, "the generated run has failures"
    endings = section(page, "endings")
    assert all(f'data-id="{candidate}"' in endings for candidate in failed)
    assert f"Evaluations without a score: {len(failed)}" in endings


def test_programs_experiments_and_answers_are_in_the_data(page: str, task: Task) -> None:
    data = data_of(page)
    (run,) = data["runs"]
    texts = list(texts_of(data))
    assert len(run["commits"]) == 13
    assert len(run["analyses"]) == len(run["answers"]) == 12
    initial = next(row for row in run["commits"] if row[0] == "initial")
    assert texts[initial[11][0][1]] == task.initial["program.py"].decode()
    assert texts[run["analyses"][0][8]] == "3 bins\n"
    verdict, line, _, budget = texts[run["commits"][1][12]].split("\n")
    assert json.loads(verdict)["commit"] == json.loads(line)["id"] == run["commits"][1][0]
    assert json.loads(budget)["commits_left"] == 5


def test_the_same_text_is_kept_once(task: Task, tmp_path: Path) -> None:
    data = data_of(page_of(generated(task, tmp_path, Generated()), tmp_path))
    assert list(texts_of(data)).count("3 bins\n") == 1


def test_the_policy_allows_these_two_hashes_and_nothing_else(page: str) -> None:
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    rules = dict(part.strip().split(" ", 1) for part in policy[1].replace("&#x27;", "'").split(";"))
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    assert style is not None
    assert script is not None
    assert rules == {
        "default-src": "'none'",
        "script-src": f"'{_sha256(script[1])}'",
        "style-src": f"'{_sha256(style[1])}'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert page.index("Content-Security-Policy") < page.index("<style>")


def _sha256(code: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()


def test_the_page_names_no_other_place(page: str, hostile: str) -> None:
    for text in (page, hostile):
        for name, attributes in Elements(text).found:
            assert name not in {"img", "iframe", "object", "embed", "link", "base", "form"}
            assert not {"src", "srcset", "style", "action"} & set(attributes), name
            assert not any(key.startswith("on") for key in attributes), name
            assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in page
    assert "@import" not in page


def test_hostile_text_adds_no_element(page: str, hostile: str) -> None:
    ours = {name for name, _ in Elements(page).found}
    assert {name for name, _ in Elements(hostile).found} <= ours
    assert hostile.count("<script") == hostile.count("</script>") == 2
    assert "<img" not in hostile
    assert "<!--" not in hostile


def test_hostile_characters_are_visible(hostile: str) -> None:
    assert not set("\u2028\u2029\u202e\u202c\x1b\x00\ufeff") & set(hostile)
    assert "\\u202egnp.exe" in hostile
    texts = "\n".join(texts_of(data_of(hostile)))
    assert "\\u202egnp.exe" in texts
    assert not set("\u2028\u202e\x1b\x00") & set(texts)


@pytest.mark.parametrize("commits", [250, pytest.param(2500, marks=pytest.mark.slow)], ids="{} commits".format)
def test_as_many_commits_as_a_long_run_has_fit(task: Task, tmp_path: Path, commits: int) -> None:
    what = Generated(islands=4, commits=commits, interval=10, thinking=5, words="x" * 100)
    page = page_of(generated(task, tmp_path, what), tmp_path)
    data = data_of(page)
    (run,) = data["runs"]
    assert len(page.encode()) < MAX_PAGE_BYTES
    assert len(run["commits"]) == 4 * commits + 1
    assert len(run["answers"]) == 4 * commits
    assert set(run["left_out"].values()) == {0}
    shapes = sum(name in {"circle", "rect", "tr", "path"} for name, _ in Elements(page.partition("<script")[0]).found)
    assert shapes < 10_000, "a browser draws what is there without a script"


def test_lists_without_room_keep_the_best_and_say_what_is_missing(task: Task, tmp_path: Path) -> None:
    run = page_run(generated(task, tmp_path, Generated()), tmp_path)
    data = run_data(run.view, run.records, TextPool(max_bytes=1 << 20), max_bytes=4000)
    assert 0 < data["left_out"]["commits"] < 13
    assert data["best"] in {row[0] for row in data["commits"]}
    assert len(data["commits"]) + data["left_out"]["commits"] == 13
    assert len(data["analyses"]) + data["left_out"]["analyses"] == 12
    assert len(data["answers"]) + data["left_out"]["answers"] == 12


def test_several_runs_stand_side_by_side(task: Task, tmp_path: Path) -> None:
    runs = [page_run(generated(task, tmp_path, Generated(commits=2)), tmp_path, one) for one in (RUN, "ba9876543210")]
    page = report_page(runs, [])
    assert 'role="tablist" aria-label="Runs"' in page
    assert [run["run"] for run in data_of(page)["runs"]] == [RUN, "ba9876543210"]
    assert 'id="run1-summary"' in page


def test_every_table_has_a_caption_and_every_picture_a_title(page: str) -> None:
    assert page.count("<table") == page.count("<caption>")
    for picture in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        assert "<title>" in picture or 'aria-hidden="true"' in picture


def test_a_run_without_a_single_commit_has_a_page(task: Task, tmp_path: Path) -> None:
    journal = generated(task, tmp_path, Generated(commits=1, islands=1))
    kept = {key: text for key, text in journal.entries.items() if key in {"run", "initial"}}
    journal.entries = kept
    page = page_of(journal, tmp_path)
    assert "No program has been committed yet." in page
    del journal.entries["initial"]
    assert "Nothing has a score yet." in page_of(journal, tmp_path)


def test_the_command_writes_one_file_or_a_folder(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = Recording.of(tmp_path / "home", task, analysis=True, interval=2).made()
    call = without_engine(tmp_path / "home", monkeypatch, capsys)
    code, out, _ = call("report", run_id, "-o", str(tmp_path / "page.html"), "--json")
    assert code == 0
    document = json.loads(out)
    assert document["files"] == [str(tmp_path / "page.html")]
    page = (tmp_path / "page.html").read_text()
    assert f"{document['runs'][0]['run']['best']['metrics']['excess_percent']:.6g}" in without_tags(
        section(page, "summary")
    )
    assert call("report", run_id, "-o", str(tmp_path / "page.html"))[0] == 2
    assert call("report", run_id, "-o", str(tmp_path / "folder"))[0] == 0
    assert (tmp_path / "folder" / "report.html").read_text() == page
    assert (tmp_path / "folder" / "grid.png").exists()


def test_answers_of_a_real_run_are_those_of_the_recorded_conversations(task: Task, tmp_path: Path) -> None:
    run_id = Recording.of(tmp_path, task, analysis=True, interval=2, commits=4).made()
    with RunStore(tmp_path).open(run_id, read_only=True) as journal:
        run = page_run(journal, tmp_path, run_id)
    answers = run.records.answers
    assert answers is not None
    sent = {answer.commit for answer in answers.log.answers if answer.was_sent}
    assert answers.checked == sent
    assert len(sent) >= 6
    assert answers.remark == ""
    assert any(answer.migration for answer in answers.log.answers)
