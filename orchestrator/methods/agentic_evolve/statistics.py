"""Curves and counts that reports are made of, from a run's history alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.domain.conversation import Usage
from orchestrator.methods.agentic_evolve.entries import INITIAL, Entry
from orchestrator.methods.agentic_evolve.history import Analysed, Answered, History, Shown, best_of


@dataclass(frozen=True, slots=True, kw_only=True)
class BestSoFar:
    """A point of the curves of best quality against evaluations and against cost."""

    evaluations: int
    """Paid ones of commits; 0 is the initial program."""
    usage: Usage
    """Of all replies until then."""
    cpu_seconds: float | None
    """Of the containers of all programs and analyses until then, the initial program's among them; None: unknown."""
    best: Entry | None
    """The first of highest fitness until then; None: nothing has a score yet."""


def best_so_far(history: History) -> list[BestSoFar]:
    """One point for the initial program and one for each paid evaluation, in the order in which they were recorded."""
    if history.initial is None:
        return []
    usage, best = Usage(), best_of([history.initial], history.fitness)
    cpu = history.initial.verdict.outcome.cpu_seconds
    points = [BestSoFar(evaluations=0, usage=usage, cpu_seconds=cpu, best=best)]
    for step in history.steps:
        if isinstance(step, Answered):
            usage += step.reply.usage
        elif isinstance(step, Analysed):
            cpu = _sum(cpu, step.cpu_seconds)
        elif isinstance(step, Entry) and step.duplicate_of is None:
            cpu = _sum(cpu, step.verdict.outcome.cpu_seconds)
            best = best_of([step] if best is None else [best, step], history.fitness)
            points.append(BestSoFar(evaluations=len(points), usage=usage, cpu_seconds=cpu, best=best))
    return points


def _sum(total: float | None, more: float | None) -> float | None:
    return None if total is None or more is None else total + more


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossIslandReads:
    """How migration candidates were used, counted as in section S2-D of the paper."""

    offered: int
    """Candidates shown by a migration after which the island committed at least once."""
    offered_and_read: int
    """Of these, how many the agent retrieved."""
    commits_after_a_read: int
    """Commits with at least one read of another island's program since the commit before."""
    improved_island_best: int
    """Of these commits, how many exceeded the island's best until then, the initial program's score included."""
    improved_run_best: int
    identical_to_a_read: int
    """Of these commits, how many have exactly the files of a program that was read for them."""


def cross_island_reads(history: History) -> CrossIslandReads:
    """Count over all islands; which commits improved the run's best depends on the order of completion."""
    counted = [line for line in _commits_with_bests(history) if _foreign_parents(line[0])]
    payloads = {entry.id: entry.candidate.payload for entry in history.commits}
    offered, read = _offered(history), _reads(history)
    return CrossIslandReads(
        offered=len(offered),
        offered_and_read=len(offered & read),
        commits_after_a_read=len(counted),
        improved_island_best=sum(_exceeds(entry, island, history) for entry, island, _ in counted),
        improved_run_best=sum(_exceeds(entry, run, history) for entry, _, run in counted),
        identical_to_a_read=sum(
            any(payloads[parent] == entry.candidate.payload for parent in _foreign_parents(entry))
            for entry, _, _ in counted
        ),
    )


def _commits_with_bests(history: History) -> Iterator[tuple[Entry, Entry | None, Entry | None]]:
    """Each commit with the best of its island and of the run before it."""
    start = [] if history.initial is None else [history.initial]
    bests: dict[int | None, Entry | None] = {}
    run = best_of(start, history.fitness)
    for step in history.steps:
        if isinstance(step, Entry):
            island = bests.get(step.island, best_of(start, history.fitness))
            yield step, island, run
            bests[step.island] = best_of([e for e in (island, step) if e is not None], history.fitness)
            run = best_of([e for e in (run, step) if e is not None], history.fitness)


def _exceeds(entry: Entry, best: Entry | None, history: History) -> bool:
    if best is None:
        return entry.verdict.metrics is not None
    return best_of([best, entry], history.fitness) is entry


def _foreign_parents(entry: Entry) -> list[str]:
    """Programs of other islands that were read for a commit, or that its files were set to before they were changed."""
    own = f"i{entry.island}-"
    return [parent for parent in entry.candidate.parents if parent != INITIAL and not parent.startswith(own)]


def _offered(history: History) -> set[tuple[int, str]]:
    """(island, candidate) of what was shown before the island's last commit."""
    offered: set[tuple[int, str]] = set()
    waiting: dict[int | None, list[str]] = {}
    for step in history.steps:
        if isinstance(step, Shown):
            waiting.setdefault(step.island, []).extend(step.ids)
        elif isinstance(step, Entry) and step.island is not None:
            offered |= {(step.island, candidate) for candidate in waiting.pop(step.island, [])}
    return offered


def _reads(history: History) -> set[tuple[int, str]]:
    """(island, candidate) of what agents retrieved with `read_commit`."""
    reads: set[tuple[int, str]] = set()
    shown: set[tuple[int, str]] = set()
    left = dict.fromkeys(range(history.header["settings"]["islands"]), history.header["settings"]["commits_per_island"])
    for step in history.steps:
        match step:
            case Shown():
                shown |= {(step.island, candidate) for candidate in step.ids}
            case Entry(island=int() as island, duplicate_of=None):
                left[island] -= 1
            case Answered() if left[step.island] > 0:  # calls in an agent's last words are not carried out
                for call in step.reply.message.tool_calls:
                    if call.name == "read_commit" and call.arguments is not None and len(call.arguments) == 1:
                        reads.add((step.island, str(call.arguments.get("id"))))
            case _:
                pass
    return reads & shown
