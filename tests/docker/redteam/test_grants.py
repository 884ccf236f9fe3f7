"""E: what a policy cannot ask for, what a request cannot slip in, and what a real container then has."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hostility import RUN
from pydantic import ValidationError

from orchestrator.domain.policies import Limits, MountRole, Policy, Purpose
from orchestrator.errors import ImageMissing, PolicyError
from orchestrator.ports import SessionRequest
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.image_builder import tag_image
from orchestrator.sandbox.image_lock import LOCK_FILE, read_lock, write_lock
from orchestrator.sandbox.images import ImageStore
from orchestrator.sandbox.policy_files import load_policy, parse_policy
from orchestrator.sandbox.settings import Blueprint, container_settings, granted_limits

pytestmark = pytest.mark.docker

SHIPPED = Path(__file__).parents[3] / "policies" / "default.yaml"
GRANT = "version: 1\nname: p\npurposes:\n  candidate:\n    image: python\n    {}\n"
DIGEST = "sha256:" + "1" * 64


def settings_of(run_id: str = "run", **labels: str) -> dict[str, Any]:
    """Of a candidate's container."""
    grant = load_policy(SHIPPED).purposes[Purpose.CANDIDATE]
    blueprint = Blueprint(
        purpose=Purpose.CANDIDATE, run_id=run_id, image_digest=DIGEST, grant=grant, limits=grant.limits
    )
    return container_settings(blueprint, name="evolvarium-x", uid=1_500_000, labels=labels)


def refused(*lines: str) -> None:
    """Every one of these lines makes a policy that is not granted; without it, it is."""
    parse_policy(GRANT.format("").encode(), "probe")
    for line in lines:
        with pytest.raises(PolicyError):
            parse_policy(GRANT.format(line).encode(), "probe")


@pytest.mark.probe("E1b", "a policy that asks for the engine's socket, as a mount in every form")
def test_a_policy_cannot_mount_a_socket() -> None:
    refused(
        "mounts: [/var/run/docker.sock]",
        "mounts: ['/run/containerd/containerd.sock:/x']",
        "mounts: [{source: /run/podman/podman.sock, target: /x}]",
        "volumes: [/var/run/docker.sock]",
        "binds: ['/var/run/docker.sock:/s']",
    )


@pytest.mark.probe("E2", "a policy that asks for privileges, capabilities, devices, graphics cards")
def test_a_policy_cannot_ask_for_privileges() -> None:
    refused(
        *("privileged: true", "cap_add: [SYS_ADMIN]", "capabilities: [ALL]", "devices: [/dev/kvm]", "gpus: all"),
        *("device_cgroup_rules: ['c 1:1 rwm']", "user: root", "uid: 0", "group_add: [docker]", "read_only: false"),
        *("environment: {A: b}", "env: [A=b]", "init: false", "command: [sh]", "entrypoint: sh", "runtime: crun"),
    )


@pytest.mark.probe("E3", "a policy that asks for a name space of the host or of another container")
def test_a_policy_cannot_share_a_name_space() -> None:
    kinds = ("network", "network_mode", "pid", "pid_mode", "ipc", "ipc_mode", "uts", "userns", "cgroupns", "links")
    refused(*(f"{kind}: {value}" for kind in kinds for value in ("host", "container:1a2b", "bridge")))


@pytest.mark.probe("E4", "a policy that mounts host paths, directly, by link or as a volume; roles it may not have")
def test_a_policy_cannot_mount_a_path_or_anothers_role() -> None:
    paths = ("/", "/proc", "/sys", "/dev", "/run", "/var/lib/docker", "~/.ssh", "../..", "/home", "./link", "C:/")
    refused(*(f"mounts: ['{path}']" for path in paths), "mounts: [task]", "mounts: [target]", "mounts: [public]")
    with pytest.raises(PolicyError):
        granted_limits(
            load_policy(SHIPPED).purposes[Purpose.CANDIDATE],
            SessionRequest(purpose=Purpose.CANDIDATE, run_id="r", attempt_id="a", mounts={MountRole.TASK: DIGEST}),
        )


@pytest.mark.probe("E5", "a policy that switches seccomp, AppArmor, SELinux or masked paths off")
def test_a_policy_cannot_switch_protection_off() -> None:
    refused(
        *("security_opt: [seccomp=unconfined]", "seccomp: unconfined", "apparmor: unconfined", "label: disable"),
        *(
            "systempaths: unconfined",
            "no_new_privileges: false",
            "masked_paths: []",
            "sysctls: {kernel.core_pattern: x}",
        ),
    )


@pytest.mark.probe("E12", "log, storage and label options in names, run ids and image names from a candidate")
@pytest.mark.parametrize(
    "text",
    [
        "x --privileged",
        'x", "Privileged": true, "y": "',
        "x\n--cap-add=ALL",
        "com.docker.compose=1",
        "{{.Secret}}",
        "$(id)",
    ],
)
def test_text_stays_text(text: str) -> None:
    plain, odd = settings_of("run", **{"evolvarium.run": "run"}), settings_of(text, **{"evolvarium.run": text})
    assert json.loads(json.dumps(odd))["Labels"] == {"evolvarium.run": text}
    assert {**odd, "Labels": {}} == {**plain, "Labels": {}}
    with pytest.raises((ValidationError, PolicyError)):
        parse_policy(GRANT.format("").replace("python", json.dumps(text)).encode(), "probe")
    refused("log_opt: {max-size: 1t}", "storage_opt: {size: 1t}", "labels: {a: b}", "log_driver: syslog")


@pytest.mark.probe("E13", "a limit that is infinite, none, negative or over the policy's")
def test_no_limit_is_without_end(policy: Policy) -> None:
    values = (".inf", ".nan", "-1", "null", "unlimited", "1.0e+300", "'1'", "true")
    refused(*(f"limits: {{{name}: {value}}}" for name in Limits.model_fields for value in values[:-2]))
    for purpose, grant in policy.purposes.items():
        for name in Limits.model_fields:
            more = grant.limits.model_copy(update={name: getattr(grant.limits, name) + 1})
            with pytest.raises(PolicyError, match=name):
                granted_limits(grant, SessionRequest(purpose=purpose, run_id="r", attempt_id="a", limits=more))


@pytest.mark.probe("E14", "restart always; removal by the engine, which hides that memory ran out")
def test_the_engine_neither_restarts_nor_removes() -> None:
    refused("restart: always", "restart_policy: {Name: always}", "auto_remove: true", "remove: true", "detach: true")
    host = settings_of()["HostConfig"]
    assert host["RestartPolicy"] == {"Name": "no"}
    assert host["AutoRemove"] is False


@pytest.mark.probe("E15", "a writable folder of the host, which has no quota")
def test_nothing_writable_is_mounted_but_the_volume_of_an_import(policy: Policy) -> None:
    refused("mounts: [{role: public, writable: true}]", "binds: [/tmp:/x:rw]", "tmpfs: {/x: size=1t}", "writable: true")
    for purpose, grant in policy.purposes.items():
        blueprint = Blueprint(
            purpose=purpose, run_id="r", image_digest=DIGEST, grant=grant, limits=grant.limits,
            volumes={role: f"volume-{role.value}" for role in grant.mounts},
        )  # fmt: skip
        host = container_settings(blueprint, name="x", uid=1_500_000, labels={})["HostConfig"]
        assert host["Binds"] == []
        writable = [mount["Target"] for mount in host["Mounts"] if not mount["ReadOnly"]]
        assert writable == (["/target"] if purpose is Purpose.IMPORT else [])


@pytest.mark.probe("E10", "move an image's tag to another image, or remove the lock")
def test_a_moved_tag_is_not_run(engine: Engine, images: ImageStore, home: Path, tmp_path: Path) -> None:
    tag = f"evolvarium/redteam:{secrets.token_hex(6)}"
    lock = read_lock(home)
    ours = lock.images["analysis"]
    store = ImageStore(engine, tmp_path)
    with pytest.raises(ImageMissing):
        store.digest("analysis")
    tag_image(engine, ours.image_id, tag)
    try:
        write_lock(tmp_path, lock.with_image("analysis", ours.model_copy(update={"tag": tag})))
        assert store.digest("analysis") == images.digest("analysis")  # the lock is good
        tag_image(engine, images.digest("base"), tag)
        with pytest.raises(ImageMissing, match="tag moved"):
            ImageStore(engine, tmp_path).digest("analysis")
    finally:
        engine.call("remove a tag", lambda client: client.remove_image(tag))
    other = lock.with_image("analysis", ours.model_copy(update={"image_id": "sha256:" + secrets.token_hex(32)}))
    write_lock(tmp_path, other)
    with pytest.raises(ImageMissing):
        ImageStore(engine, tmp_path).digest("analysis")
    (tmp_path / LOCK_FILE).write_text("{}{}")
    with pytest.raises(ImageMissing):
        ImageStore(engine, tmp_path).digest("analysis")


@pytest.mark.probe("E16", "what the engine says of a live container: host, privileges, mounts, security, name spaces")
def test_a_live_container_has_what_the_settings_say(
    sandbox: DockerSandbox, engine: Engine, policy: Policy, mounts: Mapping[MountRole, str]
) -> None:
    request = SessionRequest(purpose=Purpose.ANALYSIS, run_id=RUN, attempt_id="probe", mounts=mounts)
    with sandbox.session(request):
        (listed,) = engine.containers({"evolvarium.run": RUN})
        found = engine.inspect(str(listed["Id"])) or {}
    host, limits = found["HostConfig"], policy.purposes[Purpose.ANALYSIS].limits
    assert host["Runtime"] == policy.purposes[Purpose.ANALYSIS].runtime.value
    assert (host["Privileged"], host["ReadonlyRootfs"], host["NetworkMode"]) == (False, True, "none")
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert (host["PidMode"], host["UTSMode"], host["IpcMode"], host["CgroupnsMode"]) == ("", "", "none", "private")
    assert (host["Memory"], host["MemorySwap"]) == (limits.memory_bytes, limits.memory_bytes)
    assert host["PidsLimit"] >= limits.pids
    assert host["NanoCpus"] == limits.cpus * 1e9
    assert not host["Binds"]
    assert not host["Devices"]
    assert any(option.startswith("seccomp={") for option in host["SecurityOpt"])
    assert not [option for option in host["SecurityOpt"] if "unconfined" in option or "disable" in option]
    assert host["LogConfig"]["Type"] == "none"
    (mount,) = found["Mounts"]
    assert (mount["Type"], mount["RW"]) == ("volume", False)
    assert mount["Propagation"] in {"", "rprivate", "private"}
    assert not set(os.environ.values()) & {
        entry.partition("=")[2] for entry in found["Config"]["Env"] if "KEY" in entry
    }
    assert found["NetworkSettings"]["Networks"].keys() <= {"none"}
