"""`evolvarium policy`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.cli.installation_documents import DataRuleDocument, PolicyDocument, PurposeDocument
from orchestrator.cli.options import Json, RuntimeName
from orchestrator.cli.terminal import Terminal
from orchestrator.domain.policies import Purpose
from orchestrator.errors import InputError
from orchestrator.sandbox.explain import Explanation, PolicyExplanation
from orchestrator.sandbox.explain import explain as explanation_of

_ON_TASKS = frozenset({Purpose.CANDIDATE, Purpose.EVALUATOR, Purpose.ANALYSIS})
"""What the disclosure concerns; data rules concern the others."""

policy_app = typer.Typer(help="Read access policies.", no_args_is_help=True, rich_markup_mode=None)


@policy_app.command("explain")
def explain(
    policy: Annotated[str, typer.Argument(metavar="FILE|NAME", help="A YAML file, or a name under policies/.")],
    purpose: Annotated[
        Purpose | None, typer.Option("--purpose", help="Only this purpose, and what concerns it.", show_default=False)
    ] = None,
    runtime: RuntimeName = None,
    settings: Annotated[
        bool,
        typer.Option("--settings", help="Then also print the exact settings that the engine is given (long)."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Say in plain words what each purpose gets, and what may be read of which database."""
    found = explanation_of(find_policy(find_places(None, None), policy, runtime))
    document = PolicyDocument(
        name=found.name,
        digest=found.digest,
        description=found.description,
        purposes=[
            PurposeDocument(purpose=one.purpose, serves=one.serves, words=list(one.words), settings=dict(one.settings))
            for one in _chosen(found, purpose)
        ],
        refused=list(found.refused),
        data=[
            DataRuleDocument(number=one.number, words=list(one.words), **one.rule.model_dump(mode="json"))
            for one in found.data
        ],
        models=list(found.models),
        disclosure=list(found.disclosure),
        accepted_unproven=list(found.accepted_unproven),
    )
    Terminal(as_json=as_json).result(document, *_paragraphs(document, purpose, with_settings=settings))


def _chosen(found: PolicyExplanation, purpose: Purpose | None) -> Sequence[Explanation]:
    if purpose is None:
        return found.purposes
    chosen = [one for one in found.purposes if one.purpose == purpose]
    if not chosen:
        granted = ", ".join(one.purpose for one in found.purposes) or "none"
        msg = f"policy {found.name!r} does not grant purpose {purpose.value!r}, so it cannot run; it grants {granted}"
        raise InputError(msg)
    return chosen


def _paragraphs(document: PolicyDocument, purpose: Purpose | None, *, with_settings: bool) -> list[str]:
    """What runs, what it may read, what a model is told; exact settings last, for they are long."""
    paragraphs = [f"Policy {document.name} ({document.digest})\n{document.description}".rstrip()]
    paragraphs += _purposes(document.purposes)
    if document.refused and purpose is None:
        paragraphs.append(f"\nCannot run: {', '.join(document.refused)}")
    if purpose is None or purpose not in _ON_TASKS:
        paragraphs.append(_data(document.data))
    if purpose is None:
        paragraphs.append(_models(document.models))
    if purpose is None or purpose in _ON_TASKS:
        paragraphs.append("\n".join(["\nWhat a model sees", *(f"- {sentence}" for sentence in document.disclosure)]))
    if document.accepted_unproven:
        paragraphs.append(f"\nRelied on without proof: {', '.join(document.accepted_unproven)}")
    if with_settings:
        paragraphs += [
            f"\nSettings of {one.purpose}\n{json.dumps(one.settings, indent=1)}" for one in document.purposes
        ]
    return paragraphs


def _purposes(purposes: Sequence[PurposeDocument]) -> list[str]:
    """A paragraph for each; what all of them share is said once."""
    shared = [word for word in purposes[0].words if all(word in one.words for one in purposes)] if purposes[1:] else []
    paragraphs = [("Every container", shared)] if shared else []
    paragraphs += [
        (f"{one.purpose}: {one.serves}", [word for word in one.words if word not in shared]) for one in purposes
    ]
    return ["\n".join([f"\n{heading}", *(f"- {word}" for word in words)]) for heading, words in paragraphs]


def _data(rules: list[DataRuleDocument]) -> str:
    lines = ["\nWhich databases can be read"]
    for rule in rules:
        first, *rest = rule.words
        lines += [f"{rule.number}. {first}", *(f"   {sentence}" for sentence in rest)]
    last = (
        "Nothing can be read of a database that no rule names." if rules else "No database can be read: no data rule."
    )
    return "\n".join([*lines, f"- {last}"])


def _models(rules: Sequence[str]) -> str:
    last = "No other model may be asked" if rules else "None: no rule names any"
    lines = ["\nWhich language models may be asked", *(f"- {sentence}" for sentence in rules)]
    return "\n".join([*lines, f"- {last}; the offline engine and replays of recorded runs need no rule."])
