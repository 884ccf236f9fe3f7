"""What a report of a search needs beside its history: its experiments, and what its agents were answered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.bootstrap.analyses import RecordedAnalysis, read_analyses
from orchestrator.bootstrap.answer_check import walk_again
from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.search import SearchRun, recorded_run
from orchestrator.bootstrap.search_replay import stand_in
from orchestrator.bootstrap.shown_answers import AnswerLog, ShownAnswer, read_answers
from orchestrator.domain.policies import Policy
from orchestrator.errors import EvolvariumError, RunStateError
from orchestrator.evaluation.disclosure import TaskDisclosure
from orchestrator.methods.agentic_evolve import History, texts
from orchestrator.ports import Journal
from orchestrator.runtime.workers import CancelToken

MAX_WALKED_REQUESTS = 2000
"""Every request means digesting a whole conversation; a longer run's answers are rebuilt, and not checked."""


class Notice(StrEnum):
    """What an answer's notice says."""

    NONE = "none"
    BUDGET = "budget_exhausted"
    CONTEXT = "context_limit"
    UNKNOWN = "unknown"
    """Either none, or that the context is nearly full: the records alone do not tell."""

    def json(self) -> str | None:
        """As it stands in the answer; None: unknown."""
        if self is Notice.UNKNOWN:
            return None
        return json.dumps(None if self is Notice.NONE else texts.fixed_text(self.value), ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The disclosure log of a run, and how far it is known to be exact."""

    log: AnswerLog
    notices: Mapping[str, Notice]
    """By commit."""
    checked: frozenset[str]
    """Commits whose answer, byte for byte, is part of a conversation with the recorded digest."""
    remark: str
    """Why not all that were sent are checked; empty: they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRecords:
    """All of it."""

    analyses: Sequence[RecordedAnalysis]
    analysis_texts: Sequence[str]
    """What each of them printed, as its agent was shown it, or whole where that is not known."""
    answers: Answers | None
    problem: str
    """Why there is no log of the answers; empty: there is."""


def read_report_records(places: Places, run_id: str, journal: Journal, history: History) -> ReportRecords:
    """Read them; the answers only as long as the task is still that of the run.

    Raises:
        RunStateError: A record is damaged.
    """
    analyses = list(read_analyses(journal))
    try:
        run, policy = _run_and_policy(places, run_id, journal)
    except EvolvariumError as error:
        printed = [one.result.output.decode(errors="replace") for one in analyses]
        return ReportRecords(analyses=analyses, analysis_texts=printed, answers=None, problem=str(error))
    disclosure = TaskDisclosure(policy.disclosure, run.task)
    printed = [disclosure.analysis(one.result) for one in analyses]
    answers = _answers(run, policy, disclosure, history)
    return ReportRecords(analyses=analyses, analysis_texts=printed, answers=answers, problem="")


def _run_and_policy(places: Places, run_id: str, journal: Journal) -> tuple[SearchRun, Policy]:
    """The run with its task and policy, as they are now.

    Raises:
        EvolvariumError: One is missing, or the task is not what it was.
    """
    run = recorded_run(places, run_id, journal)
    known = (journal.get("run") or {})["task"]
    if run.task.initial.digest != known["initial"] or list(run.task.view.features) != known["features"]:
        msg = f"task {run.task.name!r} has changed since the run; restore the package to see what was answered"
        raise RunStateError(msg)
    return run, find_policy(places, run.choices.policy, run.choices.runtime)


def _has_changed(policy: Policy, journal: Journal) -> bool:
    """Whether the run had another policy at any time; what it disclosed may be the same all the same."""
    records = [journal.get("run") or {}, *(record for _, record in journal.records("run/policy/"))]
    return {record["policy"]["digest"] for record in records} != {policy.digest()}


def _answers(run: SearchRun, policy: Policy, disclosure: TaskDisclosure, history: History) -> Answers:
    log = read_answers(run.journal, history, run.settings, run.task.view, disclosure)
    heard, remark = _heard(run, policy, disclosure, history)
    sent = {answer.commit for answer in log.answers if answer.was_sent}
    notices = {answer.commit: _notice(answer, heard.get(answer.commit)) for answer in log.answers}
    checked = {
        commit
        for commit, text in (log.texts() if heard else ())  # all of a long run together would be very long
        if commit in sent and heard.get(commit) == f'{text}, "notice": {notices[commit].json()}}}'
    }
    if checked != sent:
        changed = f"policy {policy.name!r} is not the one that the run had" if _has_changed(policy, run.journal) else ""
        lost = "" if remark else "they could not be followed to a recorded conversation"
        remark = "; ".join(part for part in (changed, remark, lost) if part)
    return Answers(log=log, notices=notices, checked=frozenset(checked), remark=remark)


def _heard(
    run: SearchRun, policy: Policy, disclosure: TaskDisclosure, history: History
) -> tuple[Mapping[str, str], str]:
    requests = history.total.requests
    if history.initial is None:
        return {}, ""
    if requests > MAX_WALKED_REQUESTS:
        return {}, f"with {requests:,} requests this run is too long to walk through once more"
    try:
        count = stand_in(run, policy, run.journal, CancelToken(), lambda _: None).count_tokens
        return walk_again(run, disclosure, count), ""
    except EvolvariumError as error:
        return {}, str(error)


def _notice(answer: ShownAnswer, heard: str | None) -> Notice:
    if answer.is_last_notice:
        return Notice.BUDGET
    if heard is None:
        return Notice.UNKNOWN
    return Notice.NONE if json.loads(heard).get("notice") is None else Notice.CONTEXT
