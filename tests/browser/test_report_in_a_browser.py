"""The page of `report` in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.cli.report_page import PageRun, report_page
from orchestrator.evaluation.tasks import Task, load_task
from orchestrator.storage.runs import RunStore
from tests.browser.chromium import Browser, browser, find_chromium
from tests.recorded_runs import Recording
from tests.report_lab import HOSTILE, RUN, Generated, generated, page_of, page_run

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed; `apt-get install chromium`"),
]
ROOT = Path(__file__).parents[2]
CANDIDATE = "document.querySelector('[data-hook=candidate] h4').firstChild.textContent"


@pytest.fixture(scope="module")
def task() -> Task:
    return load_task(ROOT / "tasks" / "online_bin_packing")


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def recorded(task: Task, tmp_path_factory: pytest.TempPathFactory) -> PageRun:
    """A run that was really searched."""
    home = tmp_path_factory.mktemp("home")
    run_id = Recording.of(home, task, analysis=True, interval=2, commits=4).made()
    with RunStore(home).open(run_id, read_only=True) as journal:
        return page_run(journal, home, run_id)


def opened(window: Browser, page: str, folder: Path, *, width: int = 1280, dark: bool = False) -> None:
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    window.open(path, width=width, dark=dark)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)], ids=["wide light", "narrow dark"])
def test_it_opens_without_a_complaint_asks_for_nothing_and_fits(
    window: Browser, recorded: PageRun, tmp_path: Path, width: int, dark: bool
) -> None:
    opened(window, report_page([recorded], []), tmp_path, width=width, dark=dark)
    window.wait("document.querySelector('[data-hook=answers] pre') !== null")
    assert window.complaints == []
    assert window.requests == [(tmp_path / "report.html").as_uri()]
    assert window.value("document.documentElement.scrollWidth") <= width


def test_numbers_are_those_of_the_document(window: Browser, recorded: PageRun, tmp_path: Path) -> None:
    opened(window, report_page([recorded], []), tmp_path)
    document = recorded.document
    assert document.best is not None
    cards = window.value("[...document.querySelectorAll('.card .value')].map((one) => one.textContent)")
    assert document.initial.metrics is not None
    assert cards == [
        f"{document.best.metrics['excess_percent']:.6g} %",
        f"{document.initial.metrics['excess_percent']:.6g} %",
        str(document.evaluations),
        str(document.analyses),
        "$0.0000",
    ]
    shown = window.value("[...document.querySelectorAll('[data-hook=candidate] dd')].map((one) => one.textContent)")
    assert f"{document.best.metrics['fitness']:.6g}" in shown
    ledger = window.value("document.querySelector('.spend tbody tr').innerText")
    assert f"{document.ledger[0].usage.input_tokens:,}" in ledger


def test_an_answer_on_the_page_is_what_the_model_was_told(window: Browser, recorded: PageRun, tmp_path: Path) -> None:
    opened(window, report_page([recorded], []), tmp_path)
    answers = recorded.records.answers
    assert answers is not None
    for commit, text in answers.log.texts():
        whole = f'{text}, "notice": {answers.notices[commit].json()}}}'
        window.value(
            "[...document.querySelectorAll('[data-hook=answers] tbody td:first-child button')]"
            f".find((one) => one.textContent === '{commit}').click()"
        )
        window.wait(f"document.querySelector('[data-hook=answers] h4').textContent.endsWith('{commit}')")
        window.value("document.querySelector('[data-hook=answers] input').click()")
        assert window.value("document.querySelector('[data-hook=answers] pre').textContent") == whole


def test_hostile_text_does_not_run(window: Browser, task: Task, tmp_path: Path) -> None:
    what = Generated(words=HOSTILE, printed=HOSTILE, extra=HOSTILE)
    opened(window, page_of(generated(task, tmp_path, what), tmp_path), tmp_path)
    for tab in range(4):
        window.value(f"document.querySelectorAll('[data-hook=candidate] [role=tab]')[{tab}]?.click()")
        window.wait("document.querySelector('[data-hook=candidate] [role=tabpanel]').textContent !== ''")
    window.value("document.querySelectorAll('[data-hook=analyses] [role=tab]')[1].click()")
    window.wait("document.querySelector('[data-hook=analyses] pre') !== null")
    assert window.value("window.hostile === undefined")
    assert window.value("document.querySelectorAll('img, iframe, .run script').length") == 0
    assert "\\u202egnp.exe" in window.value("document.querySelector('.candidate .words').textContent")
    assert window.complaints == []
    assert window.value("(() => { try { document.body.innerHTML = 'x'; } catch { return 'refused'; } })()") == "refused"


def test_cells_and_tabs_work_with_the_keyboard_alone(window: Browser, recorded: PageRun, tmp_path: Path) -> None:
    opened(window, report_page([recorded], []), tmp_path)
    stops = "[...document.querySelectorAll('svg.map')].map((m) => m.querySelectorAll('[tabindex=\"0\"]').length)"
    assert set(window.value(stops)) == {1}
    window.value("document.querySelector('svg.map [tabindex=\"0\"]').focus()")
    before = window.value("document.activeElement.dataset.id")
    window.press("ArrowRight")
    after = window.value("document.activeElement.dataset.id")
    assert after != before
    window.press("Enter")
    window.wait(f"document.querySelector('[data-hook=cell] button').textContent === '{after}'")
    window.value("document.querySelector('[data-hook=cell] button').focus()")
    window.press("Enter")
    window.wait(f"{CANDIDATE} === '{after}'")
    window.value("document.querySelector('[data-hook=candidate] [role=tab]').focus()")
    window.press("ArrowLeft")
    selected = "document.querySelector('[data-hook=candidate] [aria-selected=true]')"
    assert window.value(f"{selected}.textContent") == "What its agent was told"
    assert window.value(f"{selected} === document.activeElement")
    assert window.complaints == []


def test_a_difference_is_what_turns_one_program_into_the_other(
    window: Browser, recorded: PageRun, tmp_path: Path
) -> None:
    opened(window, report_page([recorded], []), tmp_path)
    window.wait("document.querySelector('[data-hook=candidate] pre.diff') !== null")
    lines = window.value(
        "[...document.querySelectorAll('[data-hook=candidate] pre.diff span')]"
        ".map((one) => [one.className, one.textContent.slice(2, -1)])"
    )
    best = recorded.view.history.best
    assert best is not None
    parent = next(one for one in recorded.view.history.candidates if one.id == best.candidate.parents[0])
    texts = [entry.candidate.payload["program.py"].decode().split("\n") for entry in (parent, best)]
    added = [line for kind, line in lines if kind == "added"]
    taken = [line for kind, line in lines if kind == "taken"]
    assert added
    assert len(texts[0]) - len(taken) + len(added) == len(texts[1])
    assert set(added) <= set(texts[1])
    assert set(taken) <= set(texts[0])


def test_several_runs_are_tabs(window: Browser, task: Task, tmp_path: Path) -> None:
    runs = [page_run(generated(task, tmp_path, Generated(commits=2)), tmp_path, one) for one in (RUN, "ba9876543210")]
    opened(window, report_page(runs, []), tmp_path)
    window.value("document.getElementById('tab0').focus()")
    window.press("ArrowRight")
    hidden = window.value("[...document.querySelectorAll('.run')].map((one) => one.hidden)")
    assert hidden == [True, False]
    assert window.complaints == []


def test_ten_thousand_commits_stay_usable(window: Browser, task: Task, tmp_path: Path) -> None:
    what = Generated(islands=4, commits=2500, interval=10, thinking=5)
    opened(window, page_of(generated(task, tmp_path, what), tmp_path), tmp_path)
    assert window.value("document.querySelectorAll('[data-hook=candidates] tbody tr').length") == 50
    window.value("document.querySelector('[data-hook=candidates] .sort').click()")
    window.value("document.querySelectorAll('[data-hook=candidates] .sort')[1].click()")
    window.value(
        "(() => { const box = document.querySelector('input[type=search]'); box.value = 'i3-c2500';"
        " box.dispatchEvent(new Event('input')); })()"
    )
    window.value("document.querySelector('[data-hook=candidates] tbody button').click()")
    window.wait(f"{CANDIDATE} === 'i3-c2500'")
    window.wait("document.querySelector('[data-hook=candidate] pre.diff') !== null")
    assert window.value("document.querySelectorAll('*').length") < 30_000
    assert window.complaints == []
