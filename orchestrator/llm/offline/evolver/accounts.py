"""`reasoning.md`: what was seen and what is made of it, in plain words and with the figures of the message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from orchestrator.llm.offline.evolver.notebook import Notebook
from orchestrator.llm.offline.evolver.parents import Parent, contest_accuracy, read_parents
from orchestrator.llm.offline.evolver.plans import LIBRARY, Plan
from orchestrator.llm.offline.evolver.reports import Focus
from orchestrator.llm.offline.evolver.symptoms import Symptom, counted, tool_troubles
from orchestrator.sql.quoting import one_line

_RULE_CHARACTERS = 200
_LISTED_RULES = 12


def account(plan: Plan, notebook: Notebook) -> str:
    """The account of a first draft, with its plan in the last line; after a turn without a tool call only that."""
    if notebook.idle:
        return f"# Reasoning\n\n{plan.line()}\n"
    parents = read_parents(notebook)
    parts = [
        ("What each package does well", list(_strengths(parents, notebook))),
        ("Which errors remain", list(_errors(notebook))),
        ("What is combined", list(_combined(plan, parents))),
        ("What is added", list(_added(plan))),
        ("What is expected", [_expected(notebook)]),
    ]
    text = "\n\n".join(f"## {title}\n\n" + "\n".join(lines) for title, lines in parts)
    return (
        f"# Reasoning\n\nStrategy: {one_line(notebook.strategy, 60) or 'none was named'}.\n\n{text}\n\n{plan.line()}\n"
    )


def continued(reasoning: str, focus: Focus, plan: Plan, reasons: Sequence[str], number: int) -> str:
    """An account after a Deep Focus test: what was there, less its plan, what was seen, and the plan that holds now."""
    before = "\n".join(line for line in reasoning.split("\n") if not line.startswith("Plan: ")).rstrip()
    figures = ", ".join(f"{one_line(name, 60)} {share:.4f}" for name, share in focus.accuracy.items())
    lines = [
        f"- Accuracy on the same questions: {figures or 'not told'}.",
        f"- Only the draft was right: {len(focus.unique_successes)} questions.",
        f"- Only the draft was wrong: {len(focus.unique_errors)} questions.",
        f"- Everybody was wrong: {len(focus.consensus_errors)} questions.",
        *(f"- {one_line(reason, 400)}" for reason in reasons),
    ]
    return f"{before}\n\n## After Deep Focus {number}\n\n" + "\n".join(lines) + f"\n\n{plan.line()}\n"


def description(plan: Plan) -> str:
    """One line on what a package is."""
    sections = ", ".join(choice.name for choice in plan.sections)
    new = ", ".join(plan.new_sections) or "no section"
    rules = "; ".join(one_line(text.lstrip("-* "), 80) for text in plan.new_rules) or "no rule"
    return f"Analyses with {sections}; new: {new}; rules tried: {rules}"


def _strengths(parents: Sequence[Parent], notebook: Notebook) -> Iterator[str]:
    accuracy = contest_accuracy(notebook)
    for parent in parents:
        ranked = next((entry for entry in notebook.ranking if entry.id == parent.id), None)
        figures = []
        if ranked is not None:
            known = "" if ranked.accuracy is None else f", accuracy {ranked.accuracy:.4f}"
            figures.append(f"rating {ranked.rating:.1f}{known} over {ranked.questions} questions")
        if parent.id in accuracy:
            figures.append(f"accuracy {accuracy[parent.id]:.4f} in the last contest")
        best = _best_on(parent.id, notebook)
        figures += [f"ahead on {best}"] if best else []
        sections = ", ".join(parent.sections) or "a tool without marked sections, whose text is not taken over"
        lost = f" Not taken over: {', '.join(parent.unsound)}." if parent.unsound else ""
        head = f"- {one_line(parent.id, 60)} ({'; '.join(figures) or 'no figures'})"
        yield f"{head}: {sections}; {len(parent.rules)} rules.{lost}"
    if not parents:
        yield "- No package could be read: the library's sections are used as they are."


def _best_on(id_: str, notebook: Notebook) -> str:
    """The databases on which nobody was better and somebody worse."""
    names = []
    for database in sorted({entry.database for entry in notebook.contest}):
        shares = {entry.package: entry.accuracy for entry in notebook.contest if entry.database == database}
        if id_ in shares and min(shares.values()) < shares[id_] == max(shares.values()):
            names.append(f"{one_line(database, 60)} ({shares[id_]:.4f})")
    return ", ".join(names)


def _errors(notebook: Notebook) -> Iterator[str]:
    counts: Counter[Symptom] = counted(report for reports in notebook.errors.values() for report in reports)
    total = sum(map(len, notebook.errors.values()))
    yield f"- {total} error reports were read, of {len(notebook.errors)} pairs of a package and a database."
    for symptom in sorted(counts, key=lambda each: (-counts[each], each.value)):
        yield f"- {symptom.value}: {counts[symptom]}"
    troubles = tool_troubles(notebook.contest)
    if troubles:
        yield f"- analyses that failed in the last contest: {troubles}"


def _combined(plan: Plan, parents: Sequence[Parent]) -> Iterator[str]:
    for source in dict.fromkeys(choice.source for choice in plan.sections if choice.source != LIBRARY):
        names = ", ".join(choice.name for choice in plan.sections if choice.source == source)
        yield f"- From the tool of {one_line(source, 60)}: {names}"
    yield f"- Instructions start from {one_line(plan.base, 60) or 'a short preface'}."
    own = {rule.text for parent in parents if parent.id == plan.base for rule in parent.rules}
    others = [text for text in plan.rules if text not in own and text not in plan.new_rules]
    for text in others[:_LISTED_RULES]:
        yield f"- Rule taken over or added to explain a section: {one_line(text.lstrip('-* '), _RULE_CHARACTERS)}"
    for text in plan.dropped[:_LISTED_RULES]:
        yield f"- Rule left out: {one_line(text.lstrip('-* '), _RULE_CHARACTERS)}"


def _added(plan: Plan) -> Iterator[str]:
    for choice in plan.sections:
        if choice.name in plan.new_sections:
            listed = ", ".join(f"{name}={value}" for name, value in choice.parameters.items())
            yield f"- Section {choice.name} ({listed})"
    for text in plan.new_rules:
        yield f"- Rule on trial: {one_line(text.lstrip('-* '), _RULE_CHARACTERS)}"
    if not plan.new_sections and not plan.new_rules:
        yield "- Nothing: one thing is left out, or the analysis is shorter."


def _expected(notebook: Notebook) -> str:
    best = max(contest_accuracy(notebook).values(), default=None)
    bar = "" if best is None else f" More than {best:.4f} on the same questions would be progress."
    return (
        f"- At least the accuracy of what it is made from; whether the rules on trial fit the data is not known.{bar}"
    )
