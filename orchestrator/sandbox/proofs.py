"""Which limits are proved on this engine: probed once for each engine, runtime and configuration, and remembered.

The book is `proofs.json` in the installation's state directory. Only proofs are remembered, not failures: a limit that
was not in force is probed again by the next process that relies on it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.domain.policies import Grant, Policy, ProvenLimit, Runtime
from orchestrator.errors import PrerequisiteError, UnprovenLimit
from orchestrator.ports import AuditLog
from orchestrator.runtime.user_files import open_regular, read_file
from orchestrator.sandbox import probe_scripts, probes, settings
from orchestrator.sandbox.adapter import DockerSandbox, ImageDigests
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.probes import ProbeResult, probe_policy, run_probe

PROOFS_FILE = "proofs.json"
_MAX_BYTES = 4 << 20
GVISOR_POLICY = "gvisor"
"""Name of the shipped policy that is made for the runtime runsc."""
GVISOR_LACKS = frozenset({ProvenLimit.TMPFS})
"""What runsc does not keep, and that policy accepts: the number of files, which memory alone bounds."""
_ENGINE_FACTS = (
    *("ID", "ServerVersion", "KernelVersion", "Architecture", "CgroupVersion", "CgroupDriver", "SecurityOptions"),
    *("MemoryLimit", "SwapLimit", "PidsLimit", "CpuCfsPeriod", "CpuCfsQuota", "OomKillDisable", "RuncCommit"),
)


class Proof(BaseModel):
    """Limits found in force in one configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    runtime: Runtime
    proved: dict[ProvenLimit, str]
    """Limit to what was seen."""
    proved_at: datetime


class ProofFile(BaseModel):
    """The book on disk; the keys are digests of configurations."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    proofs: dict[str, Proof] = {}


class Proofs:
    """`adapter.ProofBook` of one installation. Thread-safe, and safe across processes."""

    def __init__(
        self,
        engine: Engine,
        images: ImageDigests,
        home: Path,
        policy: Policy,
        audit: AuditLog,
        *,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Read nothing, run nothing: that happens when a limit is first relied on.

        Args:
            engine: What is proved.
            images: The probes run in the image `analysis`.
            home: The installation's state directory.
            policy: Says which limits need no proof.
            audit: Probes are container runs like any other.
            progress: Told when probes run.
        """
        self._engine = engine
        self._images = images
        self._path = home / PROOFS_FILE
        self._policy = policy
        self._audit = audit
        self._progress = progress
        self._lock = threading.Lock()  # guards _results, and lets one thread probe
        self._results: dict[Runtime, dict[ProvenLimit, ProbeResult]] = {}

    def require(self, grant: Grant) -> None:
        """As `adapter.ProofBook`.

        Raises:
            UnprovenLimit: A limit is not in force, and the policy does not accept that.
            PrerequisiteError: The engine has no such runtime, or the image is missing.
            SandboxError: The engine failed while probing.
        """
        relied_on = [limit for limit in ProvenLimit if limit not in self._policy.accept_unproven]
        results = self.prove(grant.runtime, relied_on)
        lacking = {limit: result.detail for limit, result in results.items() if not result.is_proved}
        if lacking:
            raise UnprovenLimit(refusal(self._policy, grant.runtime, lacking))

    def prove(self, runtime: Runtime, limits: Iterable[ProvenLimit] = ProvenLimit) -> dict[ProvenLimit, ProbeResult]:
        """What is known of these limits; probes those of which nothing is.

        Raises:
            PrerequisiteError: The engine has no such runtime, or the image is missing.
            SandboxError: The engine failed while probing.
        """
        wanted = list(limits)
        with self._lock:
            results = self._results.setdefault(runtime, {})
            if not all(limit in results for limit in wanted):
                self._learn(runtime, wanted, results)
            return {limit: results[limit] for limit in wanted}

    def _learn(self, runtime: Runtime, wanted: list[ProvenLimit], results: dict[ProvenLimit, ProbeResult]) -> None:
        key = configuration_digest(self._engine.info(), runtime)
        known = self._read().proofs.get(key)
        for limit, detail in (known.proved if known else {}).items():
            results[limit] = ProbeResult(is_proved=True, detail=detail)
        missing = [limit for limit in wanted if limit not in results]
        if not missing:
            return
        self._progress(f"proving {', '.join(limit.value for limit in missing)} under {runtime.value}")
        with DockerSandbox(
            policy=probe_policy(runtime),
            engine=self._engine,
            images=self._images,
            proofs=_Probing(),
            audit=self._audit,
        ) as sandbox:
            for limit in missing:
                results[limit] = run_probe(sandbox, limit)
        self._remember(key, runtime, results)

    def _read(self) -> ProofFile:
        try:
            return ProofFile.model_validate_json(read_file(self._path, _MAX_BYTES))
        except (OSError, ValidationError):
            return ProofFile()  # what cannot be read proves nothing

    def _remember(self, key: str, runtime: Runtime, results: Mapping[ProvenLimit, ProbeResult]) -> None:
        proved = {limit: result.detail for limit, result in results.items() if result.is_proved}
        with _written(self._path), _exclusive(self._path.with_suffix(".lock")):
            book = self._read()
            known = book.proofs.get(key)
            proof = Proof(
                runtime=runtime, proved={**(known.proved if known else {}), **proved}, proved_at=datetime.now(UTC)
            )
            text = book.model_copy(update={"proofs": {**book.proofs, key: proof}}).model_dump_json(indent=1)
            temporary = self._path.with_name(f".{PROOFS_FILE}.{os.getpid()}")
            temporary.write_text(text + "\n", encoding="utf-8")
            temporary.replace(self._path)


class _Probing:
    """The probes themselves cannot rely on proofs."""

    def require(self, grant: Grant) -> None:
        """Accept every grant."""


def refusal(policy: Policy, runtime: Runtime, lacking: Mapping[ProvenLimit, str]) -> str:
    """Why a policy is refused, with every limit that it relies on in vain, and the ways out.

    Args:
        policy: In force.
        runtime: Of the grant.
        lacking: Limit to what was seen; at least one.
    """
    found = ", ".join(f"{limit.value} ({detail})" for limit, detail in lacking.items())
    names = ", ".join(sorted({limit.value for limit in (*lacking, *policy.accept_unproven)}))
    accept = f"write `accept_unproven: [{names}]` into a policy of your own (docs/policies.md)"
    if runtime is Runtime.RUNSC and set(lacking) <= GVISOR_LACKS and policy.name != GVISOR_POLICY:
        accept = f"run it with `--policy {GVISOR_POLICY}`, which is made for gVisor, or {accept}"
    return (
        f"policy {policy.name!r} relies on limits that are not in force under the runtime {runtime.value}: {found}; "
        f"{accept}; `evolvarium doctor` tells more"
    )


def configuration_digest(info: Mapping[str, Any], runtime: Runtime) -> str:
    """SHA-256 over everything a proof depends on: engine, kernel, runtime, our container settings and the probes.

    Args:
        info: The engine's description of itself.
        runtime: Which of its runtimes.

    Raises:
        PrerequisiteError: The engine has no such runtime.
    """
    runtimes = info.get("Runtimes") or {}
    if runtime.value not in runtimes:
        msg = (
            f"the engine has no runtime {runtime.value!r}, only {', '.join(sorted(runtimes))}; "
            "register it in the engine's daemon.json, or name another in the policy"
        )
        raise PrerequisiteError(msg)
    sources = [Path(str(module.__file__)) for module in (settings, probes, probe_scripts)]
    sources.append(Path(str(settings.__file__)).with_name("seccomp.json"))
    facts = {
        **{name: info.get(name) for name in _ENGINE_FACTS},
        "runtime": {runtime.value: runtimes[runtime.value]},
        "settings": [hashlib.sha256(path.read_bytes()).hexdigest() for path in sources],
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


@contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = f"cannot write {path}: {error.strerror}; check the home's permissions and the free disk space"
        raise PrerequisiteError(msg) from error


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # held for one small write, never longer
        yield
    finally:
        os.close(descriptor)
