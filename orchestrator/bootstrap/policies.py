"""Access policies by name or file."""

from __future__ import annotations

from pathlib import Path

from orchestrator.bootstrap.places import Places
from orchestrator.domain.policies import Policy, Runtime
from orchestrator.errors import PolicyError
from orchestrator.sandbox.policy_files import load_policy

_SEALING = (Runtime.RUNC, Runtime.RUNSC)
"""From the weaker to the tighter."""


def find_policy(places: Places, name: str, runtime: Runtime | None = None) -> Policy:
    """A policy, with all purposes under a tighter runtime where one is asked for.

    Args:
        places: Holds the named policies.
        name: Of a file in `policies/` without its suffix, or a path to a YAML file.
        runtime: None: as the policy says.

    Raises:
        PolicyError: There is none, it is not well formed, or the runtime would loosen it.
    """
    named = {path.stem: path for path in sorted((places.project / "policies").glob("*.yaml"))}
    is_path = name.endswith((".yaml", ".yml")) or "/" in name or Path(name).is_file()
    if name not in named and not is_path:
        msg = f"no policy {name!r}; there are {', '.join(named) or 'none'}, or give the path of a YAML file"
        raise PolicyError(msg)
    policy = load_policy(named.get(name, Path(name)))
    return policy if runtime is None else _under(policy, runtime)


def _under(policy: Policy, runtime: Runtime) -> Policy:
    for purpose, grant in policy.purposes.items():
        if _SEALING.index(runtime) < _SEALING.index(grant.runtime):
            msg = (
                f"--runtime {runtime.value} would loosen policy {policy.name!r}, which runs {purpose.value!r} under "
                f"{grant.runtime.value}; an override may only tighten"
            )
            raise PolicyError(msg)
    tightened = {purpose: grant.model_copy(update={"runtime": runtime}) for purpose, grant in policy.purposes.items()}
    return policy.model_copy(update={"purposes": tightened})
