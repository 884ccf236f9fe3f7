"""What is shown of an evolution: its iterations, its packages, and what it came to; shares are in percent."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.cli.evolution_documents import (
    EvolutionDocument,
    EvolvedPackageDocument,
    FinalDocument,
    FinalScoreDocument,
    IterationDocument,
    PackageDocument,
    ReplayDocument,
)
from orchestrator.cli.ledger import all_tokens, dollars, ledger_rows
from orchestrator.cli.sql_tables import percent
from orchestrator.cli.terminal import Rows


def evolution_parts(document: EvolutionDocument) -> list[Rows | str]:
    """Everything that there is to show, the headline last."""
    parts: list[Rows | str] = [iteration_rows(document), "", package_rows(document)]
    if document.finals:
        parts += ["", final_rows(document.finals)]
    parts += ["", spent_rows(document), *ledger_rows(document.ledger)]
    return [*parts, "", *headline(document)]


def final_parts(document: FinalDocument, whole: EvolutionDocument) -> list[Rows | str]:
    """Final scores that were asked for, and what is to be known of them.

    Args:
        document: What was asked for.
        whole: The run with all its scores.
    """
    parts: list[Rows | str] = [final_rows(document.scores)]
    if len(whole.finals) > len(document.scores):
        parts.append(f"`evolvarium show {document.run}` prints all {len(whole.finals)} final scores of the run.")
    caveat = opened_before(whole)
    if caveat:
        parts.append(f"Nothing in this run was decided by the final databases{caveat}.")
    return parts


def headline(document: EvolutionDocument) -> Iterator[str]:
    """What a run came to, and what to do next."""
    yield from _reservations(document)
    if document.champion is None:
        done = sum(bool(one.accuracy) for one in document.iterations)
        if document.pause is not None:
            yield f"The run is paused: {document.pause}."
        yield f"{done} of {document.of_iterations} iterations have ended; `evolvarium resume {document.run}` goes on."
        return
    best = next(package for package in document.packages if package.id == document.champion)
    if best.select_questions:
        share = percent((best.select_right or 0) / best.select_questions)
        yield f"Champion: {best.id}, {share} % right on the selection databases, rating {best.rating:.0f}."
    else:
        yield f"Champion: {best.id} by its rating ({best.rating:.0f}); nothing was scored on the selection databases."
    if document.state == "budget-spent":
        yield "The budget ended the run before its last step."
    if not document.finals:
        yield (
            f"`evolvarium final {document.run}` scores it, once, on the databases that nothing was decided by"
            f"{opened_before(document)}."
        )
    yield f"`evolvarium export {document.run} -o DIR` makes a package of it that needs no evolution code."


def _reservations(document: EvolutionDocument) -> Iterator[str]:
    """What to know before one reads the figures."""
    if document.left_out:
        first = document.left_out[0]
        yield (
            f"{len(document.left_out)} of {sum(document.standings.values())} questions cannot be evaluated and take no "
            f"part, for instance {first.id} ({first.standing}: {first.reason}); --json has all of them."
        )
    branch = document.branch
    if branch is not None:
        note = ", whose final databases had been opened before" if branch.after_final else ""
        yield f"A branch of run {branch.run} from iteration {branch.from_iteration}{note}."


def opened_before(document: EvolutionDocument) -> str:
    """What is to be added to words on a branch's final databases; empty: nobody can have known the figures."""
    branch = document.branch
    if branch is None or not branch.after_final:
        return ""
    return (
        f"; but run {branch.run} had opened them before this branch was made, so whoever made it may have known the "
        "figures"
    )


def package_parts(document: EvolvedPackageDocument) -> list[Rows | str]:
    """One package: how it did, and its files."""
    package = document.package
    parts: list[Rows | str] = [
        Rows(
            title=f"Package {package.id} of run {document.run}{', the champion' if document.is_champion else ''}",
            columns=["what", "value"],
            rows=[
                ["made in iteration", package.iteration or None],
                ["parents", ", ".join(package.parents) or None],
                ["description", package.description or None],
                ["digest", package.digest],
                ["Elo", round(package.rating)],
                ["contests", package.tests],
                ["right", _of(package.right, package.questions)],
                [
                    "selection",
                    _of(package.select_right, package.select_questions),
                ],
            ],
            cell_characters=1000,
        ),
    ]
    if document.databases:
        parts += ["", database_rows(document)]
    if document.finals:
        parts += ["", final_rows(document.finals)]
    return parts


def database_rows(document: EvolvedPackageDocument) -> Rows:
    """Accuracy on each database, contests before selection."""
    return Rows(
        title="By database",
        columns=["database", "for", "right", "accuracy (percent)", "tool"],
        rows=[
            [
                one.database,
                "contests" if one.purpose == "evolve" else "selection",
                f"{one.right}/{one.questions}",
                percent(one.right / one.questions if one.questions else None),
                one.tool,
            ]
            for one in document.databases
        ],
    )


def package_files(document: EvolvedPackageDocument) -> list[str]:
    """The files' texts, under their names."""
    return [f"--- {file.path}\n{(file.text or '').rstrip()}" for file in document.files]


def replay_lines(document: ReplayDocument) -> str:
    """That everything came out the same."""
    return (
        f"Run {document.run} came out the same, from its journal alone: {document.iterations} contests, "
        f"{document.packages} packages with their ratings, champion {document.champion}, {document.requests} requests "
        f"({document.lost} lost) with {all_tokens(document.usage)} tokens."
    )


def iteration_rows(document: EvolutionDocument) -> Rows:
    """The contests."""
    return Rows(
        title=f"Evolution {document.run}: iterations, with the accuracy of each competitor",
        columns=["iteration", "round", "newcomer", "accuracy (percent)", "questions", "hybrid"],
        rows=[_iteration(one) for one in document.iterations],
        cell_characters=120,
        spare_columns=["hybrid", "questions"],
    )


def package_rows(document: EvolutionDocument) -> Rows:
    """The population."""
    return Rows(
        title="Packages by rating",
        columns=["package", "Elo", "Bradley-Terry (95 %)", "contests", "right", "selection", "parents", "description"],
        rows=[_package(package, document.champion) for package in document.packages],
        spare_columns=["description", "parents", "right"],
    )


def final_rows(scores: list[FinalScoreDocument]) -> Rows:
    """Table 1 of the paper: packages and answer models, accuracy and cost of each."""
    return Rows(
        title="Final databases, which nothing was decided by",
        columns=["package", "answer model", "accuracy", "right", "advantage (95 %)", "tokens a question", "cents each"],
        rows=[_final(score) for score in scores],
        spare_columns=["tokens a question", "right"],
    )


def spent_rows(document: EvolutionDocument) -> Rows:
    """Who spent what."""
    rows: list[list[object]] = [
        [
            role,
            one.requests,
            all_tokens(one.usage) - one.usage.output_tokens,
            one.usage.output_tokens,
            dollars(one.usage),
        ]
        for role, one in document.spent.items()
    ]
    return Rows(title="Spent", columns=["role", "requests", "input tokens", "output tokens", "US dollars"], rows=rows)


def _iteration(one: IterationDocument) -> list[object]:
    accuracy = ", ".join(f"{name} {percent(share)}" for name, share in one.accuracy.items())
    made = one.newcomer or (f"failed: {one.failure}" if one.failure else None)
    return [
        one.iteration,
        one.kind if one.strategy is None else one.strategy,
        made,
        accuracy or "not ended",
        one.questions,
        f"{one.hybrid_analyses} of {one.analyses}",
    ]


def _package(package: PackageDocument, champion: str | None) -> list[object]:
    rating = package.bradley_terry
    interval = None
    if rating is not None:
        ends = "" if rating.low is None or rating.high is None else f" ({rating.low:.0f} to {rating.high:.0f})"
        interval = f"{rating.rating:.0f}{ends}"
    return [
        f"{package.id} *" if package.id == champion else package.id,
        round(package.rating),
        interval,
        package.tests,
        _of(package.right, package.questions),
        _of(package.select_right, package.select_questions),
        ", ".join(package.parents) or None,
        package.description or None,
    ]


def _of(right: int | None, questions: int | None) -> str | None:
    return f"{right}/{questions}" if questions else None


def _final(score: FinalScoreDocument) -> list[object]:
    advantages = "; ".join(
        f"{100 * one.difference:+.1f} over {one.over} ({100 * one.low:+.1f} to {100 * one.high:+.1f})"
        for one in score.advantages
    )
    return [
        score.package,
        score.model,
        f"{percent(score.accuracy)} %",
        f"{score.right}/{score.questions}",
        advantages or None,
        score.tokens_per_question,
        "unknown" if score.usd_per_question is None else f"{100 * score.usd_per_question:.3f}",
    ]
