"""Approvals: who has signed what, and what a policy counts of it."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestrator.bootstrap.release.approvals import approve, counting_approvals, public_key_of, require_approval
from orchestrator.bootstrap.release.folders import Release, add_approval, read_release
from orchestrator.domain.releases import Approval
from orchestrator.errors import AuditError, InputError, PolicyError, PrerequisiteError
from orchestrator.sandbox.policy_files import parse_policy
from tests.answering_lab import package
from tests.release_lab import asking_policy, exported, key_of

NAMES = ("ann", "bob", "cy")


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, tuple[Path, str]]:
    return {name: key_of(tmp_path, name) for name in NAMES}


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return exported(tmp_path / "p02")


def approved(release: Release, keys: dict[str, tuple[Path, str]], *names: str, **changes: Any) -> Release:
    """The package with approvals by some people, each signed with their own key."""
    for name in names:
        approve(release.folder, **{"by": name, "note": "", "key_file": keys[name][0], **changes})
    return read_release(release.folder)


def forged(release: Release, **changes: Any) -> Release:
    """The same folder, the last approval changed by hand."""
    path = release.folder / "approvals.json"
    documents = json.loads(path.read_text())
    documents[-1].update(changes)
    path.write_text(json.dumps(documents))
    return read_release(release.folder)


def counted(release: Release, keys: dict[str, tuple[Path, str]]) -> list[str]:
    policy = asking_policy(0, **{name: public for name, (_, public) in keys.items()})
    return [approval.by for approval in counting_approvals(release, policy)]


def test_an_approval_counts_and_comes_back_as_it_was_given(release: Release, keys: dict[str, tuple[Path, str]]) -> None:
    given = approve(release.folder, by="ann", note="read \u202e it", key_file=keys["ann"][0])
    again = read_release(release.folder)
    assert again.approvals == (given,)
    assert (given.manifest, given.public_key, given.by) == (release.manifest.digest, keys["ann"][1], "ann")
    assert counted(again, keys) == ["ann"]
    assert again.manifest == release.manifest


def test_so_many_different_people_as_the_policy_asks_for(release: Release, keys: dict[str, tuple[Path, str]]) -> None:
    policy = asking_policy(2, **{name: public for name, (_, public) in keys.items()})
    with pytest.raises(PolicyError, match=r"'strict' asks for 2 .*'p02', and '.*' has none; ann, bob, cy can give"):
        require_approval(release, policy)
    with pytest.raises(PolicyError, match=r"and 1 of the 1 in .* counts; ann, cy can give"):
        require_approval(approved(release, keys, "bob"), policy)
    found = require_approval(approved(release, keys, "ann"), policy)
    assert [approval.by for approval in found] == ["bob", "ann"]
    assert require_approval(release, asking_policy(0)) == ()


def test_two_approvals_by_one_key_are_one(release: Release, keys: dict[str, tuple[Path, str]]) -> None:
    approved(release, keys, "ann", note="first")
    twice = approved(release, keys, "ann", note="second")
    assert [approval.note for approval in twice.approvals] == ["second"]
    path = release.folder / "approvals.json"
    path.write_text(json.dumps(json.loads(path.read_text()) * 2))
    assert len(read_release(release.folder).approvals) == 2
    assert counted(read_release(release.folder), keys) == ["ann"]


@pytest.mark.parametrize(
    ("change", "to"),
    [("by", "bob"), ("at", "2020-01-01T00:00:00+00:00"), ("note", "I did read it"), ("signature", "A" * 86 + "==")],
)
def test_what_was_changed_after_it_was_signed_does_not_count(
    release: Release, keys: dict[str, tuple[Path, str]], change: str, to: str
) -> None:
    assert counted(forged(approved(release, keys, "ann"), **{change: to}), keys) == []


def test_a_signature_counts_under_no_other_key_name_or_manifest(
    release: Release, keys: dict[str, tuple[Path, str]], tmp_path: Path
) -> None:
    signed = approved(release, keys, "ann")
    assert counted(forged(signed, public_key=keys["bob"][1], by="bob"), keys) == []
    as_bob = approved(exported(tmp_path / "wrong-name"), keys, "ann", by="bob")
    assert (as_bob.approvals[0].by, counted(as_bob, keys)) == ("bob", [])
    unknown = approved(exported(tmp_path / "unknown"), keys, "ann", key_file=key_of(tmp_path, "eve")[0])
    assert (unknown.approvals[0].by, counted(unknown, keys)) == ("ann", [])


def test_an_approval_of_another_package_does_not_count(
    release: Release, keys: dict[str, tuple[Path, str]], tmp_path: Path
) -> None:
    other = exported(tmp_path / "other", package("Other words."))
    (other.folder / "approvals.json").write_bytes(
        (approved(release, keys, "ann").folder / "approvals.json").read_bytes()
    )
    moved = read_release(other.folder)
    assert (len(moved.approvals), counted(moved, keys)) == (1, [])
    assert counted(forged(moved, manifest=moved.manifest.digest), keys) == []


def refusal(release: Release, keys: dict[str, tuple[Path, str]]) -> str:
    """What is said where two approvals are asked for."""
    with pytest.raises(PolicyError) as caught:
        require_approval(release, asking_policy(2, **{name: public for name, (_, public) in keys.items()}))
    return str(caught.value)


def test_it_is_said_of_each_approval_that_does_not_count_why(
    release: Release, keys: dict[str, tuple[Path, str]], tmp_path: Path
) -> None:
    eve_file, eve = key_of(tmp_path, "eve")
    approved(release, keys, "bob")
    approved(release, keys, "ann", key_file=eve_file)
    said = refusal(approved(release, keys, "cy", by="ann"), keys)
    assert f"and 1 of the 3 in '{release.folder}' counts; " in said
    assert (
        f"; that by 'ann' does not count: its key {eve} is unknown to the policy, which names another key for" in said
    )
    assert "; that by 'ann' does not count: the policy names its key 'cy', so it had to be given with --by 'cy'" in said
    assert said.endswith("; ann, cy can give one with `evolvarium approve`")
    assert "'bob' does not count" not in said


def test_a_changed_approval_and_one_of_another_package_are_told_apart(
    release: Release, keys: dict[str, tuple[Path, str]], tmp_path: Path
) -> None:
    other = exported(tmp_path / "other", package("Other words."))
    signed = approved(release, keys, "ann")
    (other.folder / "approvals.json").write_bytes((release.folder / "approvals.json").read_bytes())
    moved = read_release(other.folder)
    old, new = release.manifest.digest[:19], moved.manifest.digest[:19]
    of_another = f"it is of another manifest ({old}, this is {new})"
    broken = "its signature is broken, so it was changed since it was given"
    assert f"'ann' does not count: {of_another}; ann, bob, cy can" in refusal(moved, keys)
    assert f"'ann' does not count: {broken}; ann, bob, cy can" in refusal(forged(signed, note="I did"), keys)
    assert f"'ann' does not count: {broken};" in refusal(forged(moved, manifest=moved.manifest.digest), keys)
    assert f": {of_another}, and {broken};" in refusal(forged(moved, manifest=release.manifest.digest, note="x"), keys)


def test_many_that_do_not_count_do_not_make_the_message_endless(
    release: Release, keys: dict[str, tuple[Path, str]]
) -> None:
    approved(release, keys, "ann")
    path = release.folder / "approvals.json"
    (one,) = json.loads(path.read_text())
    path.write_text(json.dumps([{**one, "by": f"eve {number // 2}"} for number in range(40)]))
    said = refusal(read_release(release.folder), keys)
    assert said.count("does not count") == 5
    assert "(there 2 times); 15 more do not count either; ann, bob, cy can give" in said


def test_what_is_of_another_manifest_goes_with_the_next_approval(
    release: Release, keys: dict[str, tuple[Path, str]], tmp_path: Path
) -> None:
    other = exported(tmp_path / "other", package("Other words."))
    (other.folder / "approvals.json").write_bytes(
        (approved(release, keys, "ann").folder / "approvals.json").read_bytes()
    )
    assert [approval.by for approval in approved(other, keys, "bob", "cy").approvals] == ["bob", "cy"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    note=st.text(st.characters(codec="utf-8"), max_size=50),
    by=st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9 ._@-]{0,10}[A-Za-z0-9])?", fullmatch=True),
)
def test_whatever_is_said_is_signed(tmp_path_factory: pytest.TempPathFactory, note: str, by: str) -> None:
    folder = tmp_path_factory.mktemp("any")
    key_file, public = key_of(folder, "key")
    approve(exported(folder / "p02").folder, by=by, note=note, key_file=key_file)
    release = read_release(folder / "p02")
    policy = parse_policy(
        json.dumps({
            "version": 1, "name": "strict", "purposes": {},
            "release": {"approvals": 1, "approvers": [{"name": by, "public_key": public}]},
        }).encode(),
        "p.yaml",
    )  # fmt: skip
    assert [(approval.by, approval.note) for approval in require_approval(release, policy)] == [(by, note)]


def test_an_approval_that_cannot_be_written_leaves_those_that_are_there(
    release: Release, keys: dict[str, tuple[Path, str]]
) -> None:
    signed = approved(release, keys, "ann")
    before = (release.folder / "approvals.json").read_bytes()
    longer = Approval.model_validate({**signed.approvals[0].model_dump(), "note": "x" * 2000})
    gone = Release(
        folder=Path("/proc/evolvarium-none"), manifest=release.manifest, package=release.package, approvals=()
    )
    with pytest.raises(InputError, match=r"cannot write the approval into .*check permissions and disk space"):
        add_approval(gone, longer)
    (release.folder / "approvals.json").unlink()
    (release.folder / "approvals.json").mkdir()
    with pytest.raises(InputError, match="cannot write the approval into"):
        add_approval(signed, longer)
    (release.folder / "approvals.json").rmdir()
    (release.folder / "approvals.json").write_bytes(before)
    assert read_release(release.folder).approvals == signed.approvals  # and no draft is left


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"by": ""}, "`by` is '': must be a name of 1 to 64 letters"),
        ({"by": "ann "}, "`by` is 'ann '"),
        ({"by": "ann\x1b[2J"}, r"`by` is 'ann\\x1b"),
        ({"note": "x" * 2001}, "`note`.* at most 2000 characters"),
    ],
)
def test_names_and_notes_have_bounds(
    release: Release, keys: dict[str, tuple[Path, str]], changes: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        approved(release, keys, "ann", **changes)
    assert not (release.folder / "approvals.json").exists()


def test_a_package_that_was_tampered_with_cannot_be_approved(
    release: Release, keys: dict[str, tuple[Path, str]]
) -> None:
    (release.folder / "package/tools/analyze.py").write_text("print(2)\n")
    with pytest.raises(InputError, match=r"'package/tools/analyze.py' was changed"):
        approve(release.folder, by="ann", note="", key_file=keys["ann"][0])


def test_keys_that_cannot_be_used_are_named(
    release: Release, keys: dict[str, tuple[Path, str]], tmp_path: Path
) -> None:
    with pytest.raises(PrerequisiteError, match=r"there is no key '.*nobody.pem'; .*openssl genpkey"):
        public_key_of(tmp_path / "nobody.pem")
    keys["ann"][0].chmod(0o644)
    with pytest.raises(AuditError, match="mode 0644"):
        approve(release.folder, by="ann", note="", key_file=keys["ann"][0])
    (tmp_path / "text.pem").write_text("no key")
    (tmp_path / "text.pem").chmod(0o600)
    with pytest.raises(AuditError, match="holds no Ed25519 private key"):
        public_key_of(tmp_path / "text.pem")


def test_a_key_made_as_the_message_says_can_be_used(release: Release, tmp_path: Path) -> None:
    path = tmp_path / "made.pem"
    try:
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(path)], check=True)
    except FileNotFoundError:
        pytest.skip("no openssl on this machine")
    path.chmod(0o600)
    approve(release.folder, by="ann", note="", key_file=path)
    assert require_approval(read_release(release.folder), asking_policy(1, ann=public_key_of(path)))


# Policies


def rules(*approvers: tuple[str, str], approvals: Any = 1, **more: Any) -> bytes:
    named = [{"name": name, "public_key": key} for name, key in approvers]
    release = {"approvals": approvals, "approvers": named, **more}
    return json.dumps({"version": 1, "name": "strict", "purposes": {}, "release": release}).encode()


KEY = base64.b64encode(bytes(31) + b"\x01").decode()
SAME_KEY = KEY[:-2] + chr(ord(KEY[-2]) + 1) + "="
OTHER = base64.b64encode(b"\x02" * 32).decode()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (rules(("ann", KEY), approvals=2), "release is .*2 approvals are asked for and 1 approvers named"),
        (rules(approvals=1), "1 approvals are asked for and 0 approvers named"),
        (rules(("ann", KEY), ("bob", KEY)), "two approvers have the public_key"),
        (rules(("ann", KEY), ("ann", OTHER)), "two approvers have the name 'ann'"),
        (rules(("ann", KEY), ("bob", SAME_KEY)), rf"public_key is .*the key is written as '{KEY}'"),
        (rules(("ann", KEY[:-4])), "release.approvers.0.public_key is "),
        (rules(("ann", KEY), approvals=True), "release.approvals is True"),
        (rules(("ann", KEY), approvals=17), "release.approvals is 17"),
        (rules(("ann", KEY), aprovals=1), r"release.aprovals is not a field of a policy; allowed here: approvals, app"),
        (rules(("", KEY)), "release.approvers.0.name is ''"),
    ],
)
def test_rules_under_which_somebody_could_count_twice_or_nobody_could_are_refused(text: bytes, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        parse_policy(text, "p.yaml")


def test_the_same_bytes_in_base64_have_one_spelling() -> None:
    assert base64.b64decode(SAME_KEY) == base64.b64decode(KEY)
    with pytest.raises(ValidationError):
        asking_policy(2, ann=KEY, bob=SAME_KEY)


def test_who_approves_is_part_of_a_policys_digest() -> None:
    assert len({asking_policy(0).digest(), asking_policy(0, ann=KEY).digest(), asking_policy(1, ann=KEY).digest()}) == 3
