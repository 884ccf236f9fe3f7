"""What `sql ask --explain` shows: rounds, critiques, clusters and utilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.cli.terminal import Rows
from orchestrator.runtime.counts import counted
from orchestrator.sql.normalisation import normalise

_PAIR = 2


def explanation_parts(explanation: Mapping[str, Any]) -> list[Rows | str]:
    """The explanation of a solution (`methods/evosql/explanation.py`), round by round."""
    parts: list[Rows | str] = []
    for round_ in explanation["rounds"]:
        parts += ["", _candidates(round_), _agreement(round_)]
        if round_["unreadable"]:
            count = counted(len(round_["candidates"]), "candidate")
            parts.append(f"The critic's replies could not be read ({round_['unreadable']} of {count}).")
        if round_["summary"]:
            parts.append(f"The critic's summary: {round_['summary']}")
    return parts


def numbers(indices: Sequence[int]) -> str:
    """Ascending numbers as people write them: `0, 2-5, 9`."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > _PAIR else ", ".join(map(str, run)) for run in runs)


def _candidates(round_: Mapping[str, Any]) -> Rows:
    """Those that differ in nothing but white space and the case of keywords are one row."""
    merged: dict[tuple[str, tuple[object, ...]], list[Mapping[str, Any]]] = {}
    for entry in round_["candidates"]:
        measured = _measured(entry, is_judged=round_["is_judged"])
        merged.setdefault((normalise(entry["sql"]), measured), []).append(entry)
    rows = [
        [len(alike), numbers([entry["index"] for entry in alike]), *measured, alike[0]["sql"]]
        for (_, measured), alike in merged.items()
    ]
    count = len(round_["candidates"])
    different = f"{len(rows)} different of " if len(rows) < count else ""
    title = f"Round {round_['round']}: {different}{count} candidate{'s' if count != 1 else ''}"
    columns = ["count", "candidates", "result", "execution", "confidence", "utility", "critique", "SQL"]
    return Rows(title=title, columns=columns, rows=rows, cell_characters=300)


def _measured(entry: Mapping[str, Any], *, is_judged: bool) -> tuple[object, ...]:
    return (
        entry["result"],
        _execution(entry["execution"]),
        None if is_judged and _is_unread(entry) else entry["confidence"],
        round(entry["utility"], 4),
        _issues(entry["critique"]),
    )


def _is_unread(entry: Mapping[str, Any]) -> bool:
    """Whether the critic had to judge it and its reply could not be read, so that its score is made up."""
    execution = entry["execution"]
    return entry["critique"] is None and execution["status"] == "ok" and bool(execution["row_count"])


def _agreement(round_: Mapping[str, Any]) -> str:
    agreement, answer = round_["agreement"], round_["answer"]
    clusters = ", ".join(f"{result} {count}" for result, count in round_["clusters"].items())
    agreed = "no result has confident candidates"
    if agreement["result"] is not None:
        stable = ", which is stable" if agreement["is_stable"] else ""
        agreed = f"{agreement['result']} has the largest confident share, {100 * agreement['share']:.0f} %{stable}"
    judged = "" if round_["is_judged"] else " Nobody judged this round; its candidates inherit from their like."
    return (
        f"Results of the best candidates: {clusters}; {agreed}. The answer would be candidate {answer['index']} of "
        f"round {answer['round']} ({answer['result']}, utility {answer['utility']:.4f}).{judged}"
    )


def _execution(execution: Mapping[str, Any]) -> str:
    if execution["status"] != "ok":
        return f"{execution['status']}: {execution['error']}"
    count = execution["row_count"]
    return f"{count} row{'s' if count != 1 else ''}{' and more' if execution['truncated'] else ''}"


def _issues(critique: Mapping[str, Any] | None) -> str:
    if critique is None:
        return "-"
    scores = ", ".join(f"{name} {score:g}" for name, score in critique["scores"].items())
    issues = "; ".join(f"{issue['problem']} -> {issue['repair']}" for issue in critique["issues"])
    return f"{scores}: {issues}" if issues else scores
