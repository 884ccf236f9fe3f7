"""The record `run`: everything that must be the same when a run is resumed."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from orchestrator.bootstrap.choices import Choices
from orchestrator.domain.policies import Policy, Purpose
from orchestrator.errors import RunStateError
from orchestrator.evaluation.hidden import files_digest
from orchestrator.evaluation.tasks import Task
from orchestrator.methods.agentic_evolve import Settings, run_record
from orchestrator.ports import Journal, LanguageModel

_POLICY_KEY = "run/policy/{:04d}"


def program_version() -> str:
    """Version of the installed package."""
    try:
        return version("evolvarium")
    except PackageNotFoundError:
        return "unknown"


def task_record(task: Task) -> dict[str, Any]:
    """What the record keeps of a task, beside what the method needs."""
    quality, choice = task.spec.quality, task.spec.final_choice
    return {
        "title": task.spec.title,
        "quality": quality.model_dump(mode="json"),
        "evaluator": files_digest(task.evaluator),
        "public": files_digest(task.public),
        "search_split": task.spec.search_split,
        **({} if choice is None else {"final_choice": choice.model_dump(mode="json")}),
    }


def policy_record(
    policy: Policy, digest_of: Callable[[str], str], purposes: Collection[Purpose] = frozenset(Purpose)
) -> dict[str, Any]:
    """A policy, and the images that it runs.

    Args:
        policy: In force.
        digest_of: Digest of an image by its role; raises `ImageMissing`.
        purposes: Those that the run needs.
    """
    images = {g.image: digest_of(g.image) for purpose, g in policy.purposes.items() if purpose in purposes}
    return {"policy": {"name": policy.name, "digest": policy.digest()}, "images": dict(sorted(images.items()))}


def run_header(
    settings: Settings, task: Task, model: LanguageModel, choices: Choices, in_force: Mapping[str, Any]
) -> dict[str, Any]:
    """The whole record.

    Args:
        settings: Of the method.
        task: Well formed.
        model: As a replay has to stand in for it.
        choices: Everything else that was asked for.
        in_force: Of `policy_record`.
    """
    method = run_record(settings, task.view, model.name)
    return {
        **method,
        "format": 1,
        "context_tokens": model.context_tokens,
        "task": {**method["task"], **task_record(task)},
        "choices": choices.model_dump(mode="json"),
        "versions": {"evolvarium": program_version(), "python": platform.python_version()},
        **in_force,
    }


def require_conditions(header: Mapping[str, Any]) -> None:
    """Accept a record that holds the conditions that `require_same` and a replay compare.

    Raises:
        KeyError: One is missing.
        TypeError: One is of another shape.
    """
    parts = [header["task"][name] for name in ("initial", "evaluator", "public", "search_split")]
    parts += [header["policy"]["name"], header["policy"]["digest"], header["model"], *dict(header["images"]).values()]
    if not all(isinstance(part, str) for part in parts) or not isinstance(header["context_tokens"], int):
        msg = "a part of the record is not text, or context_tokens is no number"
        raise TypeError(msg)


def require_same(
    journal: Journal, task: Task, in_force: Mapping[str, Any], *, accept_policy_change: bool = False
) -> None:
    """Refuse to continue a run under other conditions than it has had so far.

    Args:
        journal: Of the run.
        task: As it is now.
        in_force: Of `policy_record`, as it is now.
        accept_policy_change: Continue under another policy, and record that.

    Raises:
        RunStateError: The evaluator, the public data, an image or the policy has changed.
    """
    header = journal.get("run") or {}
    earlier = [record for _, record in journal.records("run/policy/")]
    _require_same_task(header["task"], task)
    for role, digest in in_force["images"].items():
        known = header["images"].get(role, digest)
        if known != digest:
            msg = (
                f"image {role!r} has changed since the run began ({known[:19]}, now {digest[:19]}); restore the image, "
                "or start a new run"
            )
            raise RunStateError(msg)
    policy = (earlier[-1] if earlier else header)["policy"]
    if policy["digest"] == in_force["policy"]["digest"]:
        return
    if not accept_policy_change:
        msg = (
            f"policy {policy['name']!r} has changed since the run began ({policy['digest'][:19]}, now "
            f"{in_force['policy']['digest'][:19]}); restore it, or accept the new one with --accept-policy-change"
        )
        raise RunStateError(msg)
    journal.put(_POLICY_KEY.format(len(earlier) + 1), in_force)


def _require_same_task(known: Mapping[str, Any], task: Task) -> None:
    now = task_record(task)
    changed = [name for name in ("evaluator", "public", "search_split") if known[name] != now[name]]
    if task.initial.digest != known["initial"]:
        changed.append("initial program")
    if changed:
        msg = (
            f"task {task.name!r} has changed since the run began: {', '.join(changed)}; restore the package, or start "
            "a new run"
        )
        raise RunStateError(msg)
