"""The texts EvoSQL's models are given, filled in from `prompts/`; their form is in `docs/architecture.md`.

Everything that comes from a database, a data set or a model stands in a fenced block that nothing inside can end.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from string import Template
from typing import Any

from orchestrator.domain.conversation import AssistantMessage, Conversation, UserMessage
from orchestrator.methods.evosql.candidates import Candidate, Listed
from orchestrator.methods.evosql.questions import QuestionView
from orchestrator.methods.evosql.settings import ONE_SCORE
from orchestrator.search.turns import said
from orchestrator.sql.quoting import data_block, json_line

WRITE = "Write a SQLite query"
IMPROVE = "Improve a SQLite query"
IMPROVE_WITHOUT_CRITIC = "Improve a SQLite query without a critic"
JUDGE = "Judge SQLite queries"
CHOOSE = "Choose a SQLite query"
_MAX_PROBLEMS = 20


def write_request(question: QuestionView, schema: str) -> Conversation:
    """For a first candidate."""
    return _request("write", WRITE, _task_sections(question, schema))


def improve_request(question: QuestionView, schema: str, payload: Sequence[Candidate], *, summary: str) -> Conversation:
    """For a candidate made from remembered ones and what the critic says."""
    sections = [*_task_sections(question, schema), _candidates(map_listed(payload)), ("Summary", summary, "text")]
    return _request("improve", IMPROVE, sections)


def improve_without_critic_request(question: QuestionView, schema: str, payload: Sequence[Candidate]) -> Conversation:
    """For a candidate made from remembered ones alone."""
    sections = [*_task_sections(question, schema), _candidates(map_listed(payload))]
    return _request("improve_without_critic", IMPROVE_WITHOUT_CRITIC, sections)


def judge_request(
    question: QuestionView, schema: str, listed: Sequence[Listed], *, summary: str, score_names: Sequence[str]
) -> Conversation:
    """For a critique of these candidates."""
    sections = [
        *_task_sections(question, schema),
        _candidates(listed),
        ("Summary", summary, "text"),
        ("Scores", json.dumps(list(score_names)), "json"),
    ]
    scores = _stored("scores_one" if tuple(score_names) == ONE_SCORE else "scores_four")
    return _request("judge", JUDGE, sections, scores=scores, form=_form(score_names))


def choose_request(question: QuestionView, schema: str, candidates: Sequence[Candidate]) -> Conversation:
    """For a choice among these candidates."""
    return _request("choose", CHOOSE, [*_task_sections(question, schema), _candidates(map_listed(candidates))])


def repair_request(request: Conversation, answer: AssistantMessage, problems: Sequence[str]) -> Conversation:
    """The request again, after an answer that could not be used.

    Args:
        request: What was asked.
        answer: What came; untrusted.
        problems: What is wrong with it, in our own words.
    """
    lines = [f"- {problem}" for problem in problems[:_MAX_PROBLEMS]]
    if len(problems) > _MAX_PROBLEMS:
        lines.append(f"- and {len(problems) - _MAX_PROBLEMS} more")
    text = Template(_stored("repair")).substitute(problems="\n".join(lines))
    kept = said(answer) if answer.text.strip() else AssistantMessage(text="(The answer is empty.)")
    return request.plus(kept, UserMessage(text=text))


def map_listed(candidates: Sequence[Candidate]) -> list[Listed]:
    """Candidates that stand for themselves."""
    return [Listed(candidate=candidate) for candidate in candidates]


def listed_candidate(index: int, listed: Listed) -> dict[str, Any]:
    """A candidate as a prompt's list has it."""
    candidate = listed.candidate
    entry: dict[str, Any] = {"index": index, "sql": candidate.sql, "execution": dict(candidate.execution.shown)}
    if candidate.critique is not None:
        entry["critique"] = {
            "scores": dict(candidate.critique.scores),
            "issues": [{"problem": issue.problem, "repair": issue.repair} for issue in candidate.critique.issues],
            "execution_assessment": candidate.critique.execution_assessment,
        }
    if listed.members is not None:
        entry["members"] = listed.members
    return entry


_Section = tuple[str, str, str]
"""Name, text, language of the block."""


def _request(prompt: str, title: str, sections: Sequence[_Section], **fields: str) -> Conversation:
    system = Template(_stored(prompt)).substitute(data=_stored("data"), **fields)
    parts = [_block(*section) for section in sections if section[1].strip()]
    return Conversation(system=system, messages=(UserMessage(text="\n\n".join([f"# {title}", *parts])),))


@lru_cache(maxsize=256)  # a question's schema is the longest part of each of its many requests
def _block(name: str, text: str, info: str) -> str:
    return f"## {name}\n{data_block(text, info)}"


def _task_sections(question: QuestionView, schema: str) -> list[_Section]:
    return [("Schema", schema, "sql"), ("Question", question.text, "text"), ("Hint", question.evidence, "text")]


def _candidates(listed: Sequence[Listed]) -> _Section:
    lines = [json_line(listed_candidate(index, entry)) for index, entry in enumerate(listed, 1)]
    return "Candidates", "[\n" + ",\n".join(lines) + "\n]", "json"


def _form(score_names: Sequence[str]) -> str:
    """What the critic's answer looks like."""
    evaluation = {
        "index": 1,
        "scores": dict.fromkeys(score_names, 4.5),
        "issues": [{"problem": "", "repair": ""}],
        "execution_assessment": "",
    }
    return json_line({"evaluations": [evaluation], "cumulative_summary": ""})


@cache
def _stored(name: str) -> str:
    return files(__package__).joinpath("prompts", f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")
