"""What the engine makes of trials of its tool that went wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orchestrator.llm.offline.evolver.sections import cut_sections, library
from tests.unit.offline_evolver.databases import SHOP, made
from tests.unit.offline_evolver.host import FOREIGN, Host, package, section_names, two_parents


def test_a_broken_section_of_a_parent_is_dropped_after_a_real_trial(tmp_path: Path) -> None:
    files = {"shop": made(tmp_path / "shop.sqlite", SHOP)}
    for number, change in enumerate(("return 1 / 0", "return missing_function(schema)", "x = 1\n        y = 2")):
        broken = FOREIGN.replace('return [f"- over {TRENDS_YEARS} years"]', change)
        pool = {"p02": package([library()["row_counts"], cut_sections(broken)["trends"]])}
        host = Host(pool=pool, folder=tmp_path / str(number), databases=files).run()
        assert len(host.called("try_tool")) > 1
        assert "trends" not in section_names(host)
        assert "row_counts" in section_names(host)
        assert host.finished is not None


def test_a_sound_section_of_a_parent_survives_the_trial(tmp_path: Path) -> None:
    files = {"shop": made(tmp_path / "shop.sqlite", SHOP)}
    pool = {"p02": package([library()["ddl"], cut_sections(FOREIGN)["trends"]])}
    host = Host(pool=pool, folder=tmp_path / "tries", databases=files).run()
    assert "trends" in section_names(host)
    assert len(host.called("try_tool")) == 1


def failing(failure: str, detail: str = "", **more: Any) -> dict[str, Any]:
    return {"ok": False, "failure": failure, "detail": detail, "findings": [], **more}


def test_where_time_runs_out_the_tool_becomes_cheaper() -> None:
    host = two_parents(scripted_trials=[failing("timeout")]).run()
    tools = [call["content"] for call in host.called("write") if call["file"] == "tools/analyze.py"]
    before, after = (cut_sections(tool) for tool in tools)
    assert "size_adaptation" in after
    assert after["enumerations"].parameters["limit"] < before["enumerations"].parameters["limit"]
    assert host.finished is not None


def test_what_the_screen_finds_in_a_section_is_taken_out() -> None:
    pool = {"p02": package([library()["ddl"], cut_sections(FOREIGN)["trends"]])}
    host = Host(pool=pool).run()
    line = 1 + host.draft["tools/analyze.py"].split("\n").index("def section_trends(connection, schema):")
    findings = [{"file": "tools/analyze.py", "line": line, "message": "uses 'vars'"}]
    again = Host(pool=pool, scripted_trials=[failing("refused", findings=findings)]).run()
    assert "trends" not in section_names(again)
    assert "ddl" in section_names(again)


def test_an_analysis_that_takes_too_much_of_the_budget_becomes_shorter() -> None:
    large = {"ok": True, "tokens": 9_000, "text": "x", "omitted_characters": 0}
    host = two_parents(token_budget=10_000, scripted_trials=[large]).run()
    tools = [call["content"] for call in host.called("write") if call["file"] == "tools/analyze.py"]
    sizes = [int(tool.split("MAX_BYTES = ")[1].split(" ")[0].split("\n")[0]) for tool in tools]
    assert sizes[0] <= 18_000
    assert sizes[-1] < sizes[0]


def test_a_tool_that_nothing_mends_ends_as_the_least_there_is_and_is_handed_in() -> None:
    trials = [failing(kind) for kind in ("error", "killed", "not-deterministic", "no-output", "timeout", "error", "x")]
    host = two_parents(scripted_trials=trials).run()
    assert section_names(host) == {"ddl", "row_counts"}
    assert len(host.called("try_tool")) <= 6
    assert host.finished is not None
