"""Batches as JSON documents and as tables."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Literal

from orchestrator.bootstrap.batch_records import END_KEY, BatchHeader, Member, read_header, read_members
from orchestrator.bootstrap.runs import exists
from orchestrator.cli.batch_documents import BatchDocument, BatchMember
from orchestrator.cli.documents import RunEntry, UsageDocument
from orchestrator.cli.history import RunView, read_view
from orchestrator.cli.ledger import all_tokens, dollars, usage_document
from orchestrator.cli.states import state_in_words
from orchestrator.cli.summaries import run_document
from orchestrator.cli.terminal import Rows
from orchestrator.domain.conversation import Usage
from orchestrator.errors import RunStateError
from orchestrator.ports import Journal
from orchestrator.search.final_choice import Rule
from orchestrator.storage.runs import RunInfo, RunStore

State = Literal["done", "unfinished", "paused", "budget-spent"]


def member_views(
    store: RunStore, header: BatchHeader, journal: Journal, choice: Rule | None = None
) -> Iterator[tuple[Member, RunView | RunStateError | None]]:
    """Every member with its run; None: it has none, or none any more; an error: it cannot be read.

    Args:
        store: Holds the runs.
        header: Of the batch.
        journal: Of the batch.
        choice: The rule of the final choice; None: each task's.

    Raises:
        InputError: A task declares nothing that the rule could choose by.
    """
    for member in read_members(header, journal):
        if member.run_id is None or not exists(store, member.run_id):
            yield member, None
            continue
        try:
            with store.open(member.run_id, read_only=True) as run:
                yield member, read_view(member.run_id, run, choice=choice)
        except RunStateError as error:
            yield member, error


def batch_document(
    store: RunStore,
    batch_id: str,
    journal: Journal,
    *,
    choice: Rule | None = None,
    containers_left: int | None = None,
) -> BatchDocument:
    """The one object that a batch is shown as.

    Args:
        store: Holds the runs.
        batch_id: Of the batch.
        journal: Of the batch.
        choice: The rule of the final choice; None: each task's.
        containers_left: Of the runs that have just been made; None: not asked.

    Raises:
        RunStateError: It is no batch, or damaged.
        InputError: A task declares nothing that the rule could choose by.
    """
    header = read_header(batch_id, journal)
    views = list(member_views(store, header, journal, choice))
    is_held = store.owner_pid(batch_id) is not None
    next_one = next((member.number for member, _ in views if member.end is None), None) if is_held else None
    members = [_member(member, view, is_next=member.number == next_one) for member, view in views]
    known = [view for _, view in views if isinstance(view, RunView)]
    usage = sum((view.history.total.usage for view in known), Usage(usd=Decimal(0)))
    return BatchDocument(
        run=batch_id,
        family=header.family,
        model=header.choices.model,
        state=_state(members, has_ended=journal.get(END_KEY) is not None),
        pause=next((member.pause for member in members if member.pause is not None), None),
        members=members,
        evaluations=sum(member.evaluations or 0 for member in members),
        analyses=sum(member.analyses or 0 for member in members),
        requests=sum(member.requests or 0 for member in members),
        usage=usage_document(usage),
        containers_left=containers_left,
    )


def batch_rows(document: BatchDocument) -> list[Rows]:
    """A line for each member: the final candidate's quality on every split, and what it took."""
    scores = [_qualities(member) for member in document.members]
    splits = list(dict.fromkeys(split for of_member in scores for split in of_member))
    names = list(dict.fromkeys(member.quality for member in document.members if member.quality is not None))
    measured = names[0] if len(names) == 1 else "quality"
    columns = [
        *("member", "run", "state", "best"),
        *(f"{measured}, {split}" for split in splits),
        *("evaluations", "analyses", "requests", "tokens", "US dollars"),
    ]
    rows: list[list[object]] = [
        [
            *(member.task, member.run, member.state, None if member.best is None else member.best.id),
            *(of_member.get(split) for split in splits),
            *_taken(member.evaluations, member.analyses, member.requests, member.usage),
        ]
        for member, of_member in zip(document.members, scores, strict=True)
    ]
    total = _taken(document.evaluations, document.analyses, document.requests, document.usage)
    rows.append(["all", document.run, document.state, None, *(None for _ in splits), *total])
    chosen = {member.choice for member in document.members} - {None, Rule.FITNESS.value}
    by = f", chosen by the rule {' or '.join(sorted(filter(None, chosen)))}" if chosen else ""
    title = f"Batch {document.run}: {document.family} with {document.model}{by}"
    spare = ["tokens", "US dollars", "requests", "analyses", "evaluations", "best"]
    return [Rows(title=title, columns=columns, rows=rows, spare_columns=spare)]


def batch_notes(document: BatchDocument) -> list[str]:
    """What there is to say of members that are not done, a sentence each."""
    notes = [f"{member.task}: {member.problem}" for member in document.members if member.problem is not None]
    notes += [
        f"{member.task} is {state_in_words(member.state, member.pause)}; `evolvarium resume {document.run}` goes on."
        for member in document.members
        if member.pause is not None
    ]
    return notes


def batch_entry(store: RunStore, info: RunInfo, journal: Journal) -> RunEntry:
    """A batch among other runs."""
    document = batch_document(store, info.id, journal)
    return RunEntry(
        run=document.run,
        task=document.family,
        method=f"batch of {len(document.members)}",
        model=document.model,
        state=document.state,
        pause=document.pause,
        created_at=info.created_at,
        evaluations=document.evaluations,
        bytes=info.size_bytes,
        owner_pid=info.owner_pid,
    )


def _member(member: Member, view: RunView | RunStateError | None, *, is_next: bool) -> BatchMember:
    """A member; the next one of a batch that a process works on is being prepared as long as it has no run."""
    if view is None:
        state: Literal["waiting", "preparing", "missing"] = "waiting" if member.run_id is None else "missing"
        state = "preparing" if is_next else state
        return BatchMember(task=member.task, run=None, state=state)
    if isinstance(view, RunStateError):
        return BatchMember(task=member.task, run=member.run_id, state="unreadable", problem=str(view))
    document = run_document(view)
    return BatchMember(
        task=document.task,
        run=document.run,
        state=document.state,
        pause=document.pause,
        quality=view.quality.metric,
        search_split=str(view.history.header["task"].get("search_split", "search")),
        choice=document.choice,
        best=document.best,
        final=document.final,
        evaluations=document.evaluations,
        analyses=document.analyses,
        requests=document.requests,
        usage=document.usage,
    )


def _state(members: list[BatchMember], *, has_ended: bool) -> State:
    if not has_ended:
        return "paused" if any(member.state == "paused" for member in members) else "unfinished"
    return "budget-spent" if any(member.state == "budget-spent" for member in members) else "done"


def _qualities(member: BatchMember) -> dict[str, float]:
    """The final candidate's quality by split, the one that guides the search first."""
    best, quality = member.best, member.quality
    if best is None or quality is None:
        return {}
    others = {v.split: v.metrics[quality] for v in member.final if v.id == best.id and v.metrics is not None}
    return {member.search_split or "search": best.metrics[quality], **others}


def _taken(
    evaluations: int | None, analyses: int | None, requests: int | None, usage: UsageDocument | None
) -> list[object]:
    spent = [None, None] if usage is None else [all_tokens(usage), dollars(usage)]
    return [evaluations, analyses, requests, *spent]
