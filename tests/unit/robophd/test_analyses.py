"""A package's analysis of a database: its tool's, or a model's where the tool failed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.domain.conversation import AssistantMessage, ToolCall
from orchestrator.domain.sql import Description, Schema, Table
from orchestrator.domain.tool_runs import ToolFailure, ToolFinding, ToolRun
from orchestrator.errors import RunStateError
from orchestrator.methods.robophd.answering import Source, ToolReport, brief_on, failure_text, run_tool
from tests.answering_lab import ANALYSE, WRONG, AnsweringLab, ScriptedTools, tool_run
from tests.scripted_answerer import call, read_sections


def failed_lab(*says: str | AssistantMessage, **settings: Any) -> AnsweringLab:
    """A tool that fails, and a model that says these, one after the other, when it analyses."""
    lab = AnsweringLab(**settings)
    lab.tools = ScriptedTools(tool_run(None, ToolFailure.ERROR, "it raised ValueError"))
    lab.model.scripts[ANALYSE] = (lambda request: says[min(request.turn, len(says) - 1)],)
    return lab


def calls(*made: ToolCall) -> AssistantMessage:
    return AssistantMessage(text="", tool_calls=made)


def test_a_tool_runs_once_and_its_text_is_the_analysis() -> None:
    lab = AnsweringLab()
    lab.tools = ScriptedTools(tool_run("Table p, ünïcode ```."), tool_run("never"))
    found = lab.analyse()
    assert (found.source, found.text) == (Source.TOOL, "Table p, ünïcode ```.")
    assert (found.tool.failure, found.tool.cpu_seconds, found.hybrid_requests) == (None, 0.5, 0)
    lab.begin()
    assert lab.analyse() == found
    assert lab.tools.asked == [
        (lab.package.digest, "shop/people", f"tool/{lab.package.digest[7:23]}/shop:people"),
    ]
    assert lab.model.asked == []
    briefing = brief_on(lab.context, lab.package, lab.database, found)
    assert read_sections(briefing.system)[1]["Database analysis"] == "Table p, ünïcode ```."


def test_a_tools_run_on_other_content_is_not_taken_for_it() -> None:
    lab = AnsweringLab()
    lab.analyse()
    lab.begin()
    lab.database.digest = "sha256:" + "2" * 64
    with pytest.raises(RunStateError, match="was recorded with database"):
        lab.analyse()


def test_a_tool_alone_can_be_asked_for() -> None:
    lab = failed_lab("never")
    report = run_tool(lab.context, lab.package, lab.database, tools=lab.tools)
    assert (report.failure, report.detail, report.text) == (ToolFailure.ERROR, "it raised ValueError", None)
    assert lab.model.asked == []
    assert lab.analyse().tool == report
    assert len(lab.tools.asked) == 1


def test_where_the_runtime_does_not_account_for_it_the_time_of_a_tool_is_unknown_and_refused_tools_took_none() -> None:
    lab = AnsweringLab()
    lab.tools = ScriptedTools(ToolRun(text=None, failure=ToolFailure.REFUSED))
    assert lab.analyse().tool.cpu_seconds == 0


def test_a_failure_is_told_with_what_the_screen_found() -> None:
    finding = ToolFinding(file="tools/analyze.py", line=3, message="imports 'socket'")
    report = ToolReport(failure=ToolFailure.REFUSED, detail="1 finding", findings=(finding,))
    assert failure_text(report) == "refused: 1 finding\ntools/analyze.py:3: imports 'socket'"
    assert failure_text(ToolReport(failure=ToolFailure.TIMEOUT)) == "timeout"
    assert failure_text(ToolReport(failure=None)) == ""


def test_a_model_that_reads_makes_up_for_a_failed_tool() -> None:
    lab = failed_lab(
        calls(call("list_tables"), call("describe_table", table="P")),
        calls(call("query", sql="SELECT count(*) FROM p")),
        "  People and their cities.\n",
    )
    found = lab.analyse()
    assert (found.source, found.text, found.hybrid_requests) == (Source.HYBRID, "People and their cities.", 3)
    assert found.tool.failure is ToolFailure.ERROR
    assert lab.model.titles == [ANALYSE] * 3
    assert lab.model.asked[0][0].sections == {"Tool failure": "error: it raised ValueError"}
    assert {tuple(tool.name for tool in tools) for tools in lab.model.tools} == {
        ("list_tables", "describe_table", "query")
    }
    listed, described, queried = [result for message in lab.results for result in message.results]
    assert [json.loads(line) for line in listed.text.split("\n")] == [
        {"table": "p", "kind": "table", "rows": 4, "columns": 4},
        {"table": "v", "kind": "view", "rows": None, "columns": 0},
    ]
    assert "'Oslo'" in described.text
    assert json.loads(queried.text)["rows"] == [[4]]
    assert not any(result.is_error for result in (listed, described, queried))


def test_what_a_model_calls_wrongly_is_told_to_it_and_reads_nothing() -> None:
    lab = failed_lab(
        calls(
            call("drop_table", table="p"),
            call("describe_table", table="nothing`\n# x"),
            ToolCall(id="3", name="query", arguments=None, raw_arguments="{"),
            call("query", sql="DELETE FROM p"),
        ),
        "Nothing.",
    )
    lab.analyse()
    ((unknown, missing, malformed, refused),) = [message.results for message in lab.results]
    assert unknown.is_error
    assert "there is no tool 'drop_table'" in unknown.text
    assert "there is no table 'nothing` # x'" in missing.text
    assert "no JSON object" in malformed.text
    assert (refused.is_error, json.loads(refused.text)["status"]) == (False, "refused")
    assert lab.database.asked == ["DELETE FROM p"]


def test_only_so_many_calls_of_one_message_are_carried_out() -> None:
    lab = failed_lab(calls(*[call("query", sql=WRONG)] * 20), "Enough.")
    lab.analyse()
    ((*results,),) = [message.results for message in lab.results]
    assert [result.is_error for result in results] == [False] * 16 + [True] * 4
    assert len(lab.database.asked) == 16


def test_the_requests_are_counted_and_the_model_is_told_before_the_last() -> None:
    lab = failed_lab(calls(call("list_tables")), hybrid_requests=3)
    found = lab.analyse()
    assert (found.source, found.text, found.hybrid_requests) == (Source.NONE, None, 3)
    assert "You have 3 messages in all" in lab.model.asked[0][1].system
    first, second = [message.results[-1].text for message in lab.results]
    assert "the next message must be the analysis" not in first
    assert second.endswith("[That was the last use of tools: the next message must be the analysis.]")
    lab.begin()
    assert lab.analyse() == found
    assert len(lab.model.asked) == 3


def test_what_tools_return_in_the_last_message_is_not_even_made() -> None:
    lab = failed_lab(calls(call("query", sql=WRONG)), hybrid_requests=1)
    assert lab.analyse().source is Source.NONE
    assert lab.database.asked == []


def test_without_requests_a_failed_tool_leaves_no_analysis() -> None:
    lab = failed_lab("never", hybrid_requests=0)
    found = lab.analyse()
    assert (found.source, found.text) == (Source.NONE, None)
    assert lab.model.asked == []
    assert "There is no analysis of this database." in brief_on(lab.context, lab.package, lab.database, found).system


def test_an_analysis_is_cut_where_the_settings_say() -> None:
    lab = failed_lab("é" * 5000, hybrid_characters=1000)
    assert lab.analyse().text == "é" * 1000


@pytest.mark.parametrize("said", ["", " \n"])
def test_an_empty_analysis_is_none(said: str) -> None:
    assert failed_lab(said).analyse().source is Source.NONE


def test_a_context_that_fills_up_ends_the_analysis() -> None:
    lab = failed_lab(calls(call("query", sql="SELECT printf('%.*c', 150, 'x') FROM p")))
    lab.model.context_tokens = 3000
    found = lab.analyse()
    assert found.source is Source.NONE
    assert 1 < found.hybrid_requests < 24
    assert "the next message must be the analysis" in lab.results[-1].results[-1].text


def test_long_lists_of_tables_are_cut_and_counted() -> None:
    lab = failed_lab(calls(call("list_tables")), "Many.", record_characters=1000)
    tables = tuple(Table(name=f"t{n}", kind="table", sql="", columns=()) for n in range(500))
    lab.database.description = Description(schema=Schema(tables=tables), values={}, sqlite_version="3")  # type: ignore[misc]
    lab.analyse()
    *lines, last = lab.results[0].results[0].text.split("\n")
    assert json.loads(last) == {"omitted_tables": 500 - len(lines)}
    assert len("\n".join(lines)) <= 1000


def test_a_database_without_tables_is_listed_as_such() -> None:
    lab = failed_lab(calls(call("list_tables")), "None.")
    lab.database.description = Description(schema=Schema(tables=()), values={}, sqlite_version="3")  # type: ignore[misc]
    lab.analyse()
    assert lab.results[0].results[0].text == "(There are no tables.)"
