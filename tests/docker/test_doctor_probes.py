"""Limits proved on this engine, and refused where they are not in force."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from orchestrator.bootstrap.judging import SplitChoice, judge
from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.domain.audit import AuditRecord
from orchestrator.domain.policies import Grant, Policy, ProvenLimit, Purpose, Runtime
from orchestrator.errors import UnprovenLimit
from orchestrator.evaluation.tasks import load_task
from orchestrator.ports import AuditLog
from orchestrator.runtime.workers import CancelToken
from orchestrator.sandbox.doctor import Status, examine
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.image_lock import LOCK_FILE
from orchestrator.sandbox.images import ImageStore
from orchestrator.sandbox.proofs import GVISOR_LACKS, GVISOR_POLICY, PROOFS_FILE, Proofs, configuration_digest

pytestmark = pytest.mark.docker
GRANT = Grant(image="analysis")


class _Records:
    def __init__(self) -> None:
        self.records: list[AuditRecord] = []

    def append(self, record: AuditRecord) -> None:
        self.records.append(record)


@pytest.fixture(scope="module")
def records() -> _Records:
    return _Records()


@pytest.fixture(scope="module")
def proved_home(
    engine: Engine, images: ImageStore, policy: Policy, records: _Records, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A home in which all limits were probed once under runc."""
    home = tmp_path_factory.mktemp("home")
    Proofs(engine, images, home, policy, records).require(GRANT)
    return home


def _runtimes(engine: Engine) -> list[Runtime]:
    return [runtime for runtime in Runtime if runtime.value in engine.info()["Runtimes"]]


def test_every_limit_is_proved_under_runc(
    engine: Engine, images: ImageStore, policy: Policy, proved_home: Path
) -> None:
    results = Proofs(engine, images, proved_home, policy, _Records()).prove(Runtime.RUNC)
    assert {limit: result.detail for limit, result in results.items() if not result.is_proved} == {}
    assert set(results) == set(ProvenLimit)


def test_every_probe_is_audited_and_none_is_left(engine: Engine, proved_home: Path, records: _Records) -> None:
    assert proved_home.is_dir()
    assert {record.attempt_id for record in records.records} == {f"probe-{limit.value}" for limit in ProvenLimit}
    left = engine.call("list containers", lambda client: client.containers(all=True))
    assert not {container["Id"] for container in left} & {record.container_id for record in records.records}


def test_a_proof_is_made_once(engine: Engine, images: ImageStore, policy: Policy, proved_home: Path) -> None:
    records = _Records()
    Proofs(engine, images, proved_home, policy, records).require(GRANT)
    assert records.records == []


def test_a_proof_of_another_configuration_counts_for_nothing(
    engine: Engine, images: ImageStore, policy: Policy, proved_home: Path, tmp_path: Path
) -> None:
    text = (proved_home / PROOFS_FILE).read_text()
    key = configuration_digest(engine.info(), Runtime.RUNC)
    assert key in text
    (tmp_path / PROOFS_FILE).write_text(text.replace(key, "0" * 64))
    records = _Records()
    only = frozenset(ProvenLimit) - {ProvenLimit.NETWORK}
    relaxed = policy.model_copy(update={"accept_unproven": only})
    Proofs(engine, images, tmp_path, relaxed, records).require(GRANT)
    assert [record.attempt_id for record in records.records] == ["probe-network"]
    assert len(json.loads((tmp_path / PROOFS_FILE).read_text())["proofs"]) == 2


def test_a_book_that_cannot_be_read_proves_nothing(
    engine: Engine, images: ImageStore, policy: Policy, tmp_path: Path
) -> None:
    (tmp_path / PROOFS_FILE).write_text('{"version": 1, "proofs": 5}')
    records = _Records()
    relaxed = policy.model_copy(update={"accept_unproven": frozenset(ProvenLimit) - {ProvenLimit.READ_ONLY}})
    Proofs(engine, images, tmp_path, relaxed, records).require(GRANT)
    assert [record.attempt_id for record in records.records] == ["probe-read-only"]


def test_a_limit_that_a_runtime_does_not_keep_is_refused_unless_the_policy_names_it(
    engine: Engine, images: ImageStore, proved_home: Path
) -> None:
    if Runtime.RUNSC not in _runtimes(engine):
        pytest.skip("this engine has no second runtime")
    grant = Grant(image="analysis", runtime=Runtime.RUNSC)
    strict = Policy(version=1, name="p", purposes={Purpose.ANALYSIS: grant})
    results = Proofs(engine, images, proved_home, strict, _Records()).prove(Runtime.RUNSC)
    lacking = frozenset(limit for limit, result in results.items() if not result.is_proved)
    assert lacking == GVISOR_LACKS
    assert "files under limits of 8 MiB and 128 files" in results[ProvenLimit.TMPFS].detail
    accepting = strict.model_copy(update={"accept_unproven": lacking})
    Proofs(engine, images, proved_home, accepting, _Records()).require(grant)
    with pytest.raises(UnprovenLimit, match=r"runsc: tmpfs \(it wrote .*\); run it with `--policy gvisor`"):
        Proofs(engine, images, proved_home, strict, _Records()).require(grant)


def test_a_program_is_scored_under_gvisor_by_the_policy_made_for_it(
    engine: Engine, home: Path, proved_home: Path
) -> None:
    if Runtime.RUNSC not in _runtimes(engine):
        pytest.skip("this engine has no second runtime")
    shutil.copy(home / LOCK_FILE, proved_home / LOCK_FILE)
    places = find_places(proved_home, None)
    task = load_task(places.task("online_bin_packing"))
    choice = SplitChoice(split="hidden", public_seed=True, data=None)
    policy = find_policy(places, GVISOR_POLICY)
    verdict = judge(places, task, task.initial, choice, policy, token=CancelToken(), note=lambda _: None)
    assert verdict.metrics is not None, verdict.outcome


def test_the_doctor_finds_nothing_that_stops_the_shipped_policy(home: Path, images: ImageStore, policy: Policy) -> None:
    assert images.locked().images
    audit: AuditLog = _Records()
    findings = examine(home, policy, audit, environment={})
    assert [finding for finding in findings if finding.status is Status.FAIL] == []
    assert all(finding.remedy for finding in findings if finding.status is not Status.OK)
    topics = {finding.topic for finding in findings}
    assert {f"limit {limit.value} (runc)" for limit in ProvenLimit} <= topics


def test_without_an_engine_the_doctor_says_so_and_goes_on(policy: Policy, tmp_path: Path) -> None:
    findings = examine(tmp_path, policy, _Records(), environment={}, host=f"unix://{tmp_path}/none.sock")
    assert [finding.topic for finding in findings if finding.status is Status.FAIL] == ["engine"]
    assert {"keys", "space"} <= {finding.topic for finding in findings}
