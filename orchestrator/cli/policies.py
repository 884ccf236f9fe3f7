"""`evolvarium policy`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.cli.installation_documents import DataRuleDocument, PolicyDocument, PurposeDocument
from orchestrator.cli.options import Json, RuntimeName
from orchestrator.cli.terminal import Terminal
from orchestrator.sandbox.explain import explain as explanation_of

policy_app = typer.Typer(help="Read access policies.", no_args_is_help=True, rich_markup_mode=None)


@policy_app.command("explain")
def explain(
    policy: Annotated[str, typer.Argument(metavar="FILE|NAME", help="A YAML file, or a name under policies/.")],
    runtime: RuntimeName = None,
    settings: Annotated[
        bool, typer.Option("--settings", help="Also print the exact settings that the engine is given.")
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
            PurposeDocument(
                purpose=purpose.purpose,
                serves=purpose.serves,
                words=list(purpose.words),
                settings=dict(purpose.settings),
            )
            for purpose in found.purposes
        ],
        refused=list(found.refused),
        data=[
            DataRuleDocument(number=one.number, words=list(one.words), **one.rule.model_dump(mode="json"))
            for one in found.data
        ],
        disclosure=list(found.disclosure),
        accepted_unproven=list(found.accepted_unproven),
    )
    Terminal(as_json=as_json).result(document, *_paragraphs(document, with_settings=settings))


def _paragraphs(document: PolicyDocument, *, with_settings: bool) -> list[str]:
    paragraphs = [f"Policy {document.name} ({document.digest})\n{document.description}".rstrip()]
    for purpose in document.purposes:
        paragraphs.append("\n".join([f"\n{purpose.purpose}: {purpose.serves}", *(f"- {w}" for w in purpose.words)]))
        if with_settings:
            paragraphs.append(json.dumps(purpose.settings, indent=1))
    if document.refused:
        paragraphs.append(f"\nCannot run: {', '.join(document.refused)}")
    paragraphs.append(_data(document.data))
    paragraphs.append("\n".join(["\nWhat a model sees", *(f"- {sentence}" for sentence in document.disclosure)]))
    if document.accepted_unproven:
        paragraphs.append(f"\nRelied on without proof: {', '.join(document.accepted_unproven)}")
    return paragraphs


def _data(rules: list[DataRuleDocument]) -> str:
    lines = ["\nWhich databases can be read"]
    for rule in rules:
        first, *rest = rule.words
        lines += [f"{rule.number}. {first}", *(f"   {sentence}" for sentence in rest)]
    last = (
        "Nothing can be read of a database that no rule names." if rules else "No database can be read: no data rule."
    )
    return "\n".join([*lines, f"- {last}"])
