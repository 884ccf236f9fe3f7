"""What `sql ask --explain` shows: rounds, critiques, clusters and utilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.cli.terminal import Rows


def explanation_parts(explanation: Mapping[str, Any]) -> list[Rows | str]:
    """The explanation of a solution (`methods/evosql/explanation.py`), round by round."""
    parts: list[Rows | str] = []
    for round_ in explanation["rounds"]:
        parts += ["", _candidates(round_), _agreement(round_)]
        if round_["summary"]:
            parts.append(f"The critic's summary: {round_['summary']}")
    return parts


def _candidates(round_: Mapping[str, Any]) -> Rows:
    rows = [
        [
            entry["index"],
            entry["result"],
            _execution(entry["execution"]),
            entry["confidence"],
            round(entry["utility"], 4),
            _issues(entry["critique"]),
            entry["sql"],
        ]
        for entry in round_["candidates"]
    ]
    columns = ["", "result", "execution", "confidence", "utility", "critique", "SQL"]
    return Rows(title=f"Round {round_['round']}", columns=columns, rows=rows, cell_characters=300)


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
