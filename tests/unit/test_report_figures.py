"""Numbers and curves of the page of `report`: none breaks, floats outside its frame or hides what it shows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from orchestrator.cli import report_page
from orchestrator.cli.figures import best_so_far
from orchestrator.cli.files import require_output_name
from orchestrator.cli.report_page.curves import Curve, curves_picture, left_out
from orchestrator.cli.report_page.markup import counted, number
from orchestrator.cli.report_page.scales import fitting_scale, label, needs_logarithm
from orchestrator.cli.report_page.summary import with_unit
from orchestrator.cli.terminal import Rows
from orchestrator.errors import InputError
from orchestrator.evaluation.tasks import load_task
from tests.in_process import without_engine
from tests.report_lab import Generated, generated, page_of

LANE = re.compile(r'<rect [^>]*y="([\d.]+)"[^>]*height="([\d.]+)" class="lane')
DOT = re.compile(r'<circle [^>]*cy="([-\d.]+)"[^>]*data-id="i(\d)-')


@pytest.mark.parametrize(
    ("value", "size"), [(1.5, ""), (0.0510037, ' class="long"'), (-1.23457e-05, ' class="longest"')], ids=str
)
def test_a_figure_of_a_card_is_one_piece_and_its_unit_another(value: float, size: str) -> None:
    assert with_unit(value, "bins") == f'<span{size}><span class="figure">{value:.6g}</span> bins</span>'
    style = files(report_page).joinpath("page.css").read_text(encoding="utf-8")
    (rule,) = re.findall(r"^\.figure \{(.*)\}$", style, re.MULTILINE)
    assert "white-space: nowrap" in rule


def test_zero_has_no_sign() -> None:
    assert (number(-0.0), label(-0.0), number(-4e-7)) == ("0", "0", "-4e-07")
    assert Rows(title="", columns=[""], rows=[]).cells([-0.0]) == ["0"]


def test_the_heading_of_a_document_is_whole() -> None:
    title = "words " * 40 + "end"
    assert Rows(title=title, columns=["a"], rows=[]).markdown().startswith(f"## {title}\n")


def test_counts_agree_with_their_nouns() -> None:
    assert [counted(count, "line") for count in (0, 1, 1200)] == ["0 lines", "1 line", "1,200 lines"]


@pytest.mark.parametrize(
    ("values", "needed"),
    [([1e-3, 1.0], False), ([9e-4, 1.0], True), ([0.0, 1.0], False), ([-1.0, 1e6], False), ([5e-324, 1e308], True)],
    ids=str,
)
def test_a_scale_is_logarithmic_over_more_than_three_orders(values: list[float], needed: bool) -> None:
    assert needs_logarithm(values) is needed
    made = fitting_scale(values, 0.0, 100.0, margin=0.1)
    assert made.is_logarithmic is needed
    assert all(0 <= made.place(value) <= 100 for value in values)
    ticks = made.ticks(5)
    assert 2 <= len(ticks) <= 6
    assert all(made.low <= tick <= made.high for tick in ticks)
    assert not needed or all(0 <= made.place(tick) <= 100 for tick in ticks)


@pytest.mark.parametrize(
    ("lowest", "scale", "ending"), [(1e-5, "log", "so far, log scale"), (0.1, "linear", "so far")], ids=str
)
def test_pictures_over_many_orders_name_their_logarithmic_axis(lowest: float, scale: str, ending: str) -> None:
    curve = [(0.0, 1.0), (5.0, lowest)]
    svg = curves_picture(
        [Curve(name="r", points=curve)], x_name="evaluations", y_name="best nmse so far", title="t", whole_x=True
    )
    assert f">best nmse {ending}</text>" in svg
    (axes,) = best_so_far({"r": [(int(x), y) for x, y in curve]}, "nmse").axes
    assert (axes.get_yscale(), axes.get_ylabel()) == (scale, f"best nmse {ending}")


def test_evaluations_off_the_axes_are_counted_and_not_drawn() -> None:
    dots = [(1.0, 2.0, "a"), (2.0, 900.0, "b"), (9.0, 1.5, "c")]
    curves = [Curve(name="r", points=[(0.0, 2.0), (5.0, 1.0)], dots=dots)]
    svg = curves_picture(curves, x_name="x", y_name="y", title="t", whole_x=True)
    assert re.findall(r'data-id="(\w)"', svg) == ["a", "c"]
    for x, y in re.findall(r'cx="([-\d.]+)" cy="([-\d.]+)"', svg):
        assert (0 <= float(x) <= 560, 0 <= float(y) <= 300) == (True, True)
    assert "Not drawn, of 3 evaluations with a score: 1 off the range of the axes" in left_out(curves)
    assert left_out([Curve(name="r", points=[(0.0, 2.0)], dots=dots[:1])]) == ""


def test_a_picture_that_would_be_too_full_says_what_it_passes_over() -> None:
    dots = [(float(place), 1.0, str(place)) for place in range(4000)]
    curves = [Curve(name="r", points=[(0.0, 1.0), (4000.0, 0.5)], dots=dots)]
    drawn = curves_picture(curves, x_name="x", y_name="y", title="t", whole_x=True).count("data-id")
    assert f"{4000 - drawn:,} because the picture would be too full" in left_out(curves)


@pytest.mark.parametrize("name", ["page.pdf", "report.md", "page.htm", "Report.PNG"])
def test_a_name_of_another_kind_of_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"name a folder, .* or a page, whose name ends in '\.html'"):
        require_output_name(tmp_path / name, command="report", page=True)


def test_the_command_refuses_it_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = without_engine(tmp_path / "home", monkeypatch, capsys)
    code, out, err = call("report", "nobody", "-o", str(tmp_path / "page.pdf"))
    assert (code, out) == (2, "")
    assert "page.pdf' ends in '.pdf', and `evolvarium report` cannot write such a file" in err
    assert not (tmp_path / "page.pdf").exists()


def test_no_candidate_lies_outside_of_its_lane(tmp_path: Path) -> None:
    task = load_task(Path(__file__).parents[2] / "tasks" / "online_bin_packing")
    page = page_of(generated(task, tmp_path, Generated(islands=2, commits=30)), tmp_path)
    (picture,) = re.findall(r'<svg [^>]*class="picture lineage".*?</svg>', page, re.DOTALL)
    lanes = [(float(y), float(y) + float(height)) for y, height in LANE.findall(picture)]
    dots = DOT.findall(picture)
    assert (len(lanes), len(dots)) == (2, 60)
    assert all(lanes[int(island)][0] < float(y) < lanes[int(island)][1] for y, island in dots)
    assert re.search(r"At the bottom of its lane: \d+ dots? of a lower fitness than ", page)


def test_folders_and_pages_may_be_written(tmp_path: Path) -> None:
    (tmp_path / "there.is").mkdir()
    for name in ("page.html", "page.HTML", "folder", ".folder", "2026.01.05", "there.is"):
        require_output_name(tmp_path / name, command="report", page=True)
    require_output_name(None, command="report")


@pytest.mark.skipif(shutil.which("node") is None, reason="needs a JavaScript engine")
def test_the_script_counts_and_names_changes() -> None:
    parts = [files(report_page).joinpath(f"{name}.js").read_text(encoding="utf-8") for name in ("elements", "diff")]
    element = "(name) => ({ name, texts: [], append(...all) { this.texts.push(...all); }, setAttribute() {} })"
    said = (
        "const all = (node) => typeof node === 'string' ? node : node.texts.map(all).join('|');"
        "const pairs = [['a\\n', 'a\\n'], ['a\\n', 'a\\nb\\n'], ['a\\n', 'c\\nb\\na\\n']];"
        "const shown = pairs.map(([x, y]) => all(shownDifference(x, y)));"
        "console.log(JSON.stringify([...shown, number(-0), number(-4e-7)]));"
    )
    code = f"globalThis.document = {{ createElement: {element} }};\n" + "\n".join(parts) + said
    ran = subprocess.run(["node", "-"], input=code, capture_output=True, text=True, check=True, timeout=60)
    same, one, two, *numbers = json.loads(ran.stdout)
    assert same == "unchanged, as far as this page holds it"
    assert one.startswith("1 line added, 0 taken away")
    assert two.startswith("2 lines added, 0 taken away")
    assert numbers == ["0", "-4e-7"]
