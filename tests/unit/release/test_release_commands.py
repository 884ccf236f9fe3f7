"""`export`, `approve`, `audit tool` and `answer` without an engine: texts, documents and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.release_documents import ApprovalDocument, PublicKeyDocument
from orchestrator.domain.releases import ReleaseManifest
from orchestrator.storage.signing import make_private_key
from tests.in_process import Call, without_engine
from tests.release_lab import exported, key_of

POLICIES = Path(__file__).parents[3] / "policies"


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return without_engine(tmp_path / "home", monkeypatch, capsys)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return exported(tmp_path / "p02").folder


@pytest.fixture
def strict(tmp_path: Path) -> Path:
    """A policy that asks for an approval by Ann; her key is in `ann.pem`."""
    _, public = key_of(tmp_path, "ann")
    rules = f"\nrelease:\n  approvals: 1\n  approvers:\n    - name: Ann\n      public_key: {public}\n"
    policy = tmp_path / "strict.yaml"
    policy.write_text((POLICIES / "default.yaml").read_text() + rules)
    return policy


def manifest_of(folder: Path) -> ReleaseManifest:
    return ReleaseManifest.model_validate_json((folder / "manifest.json").read_bytes())


def test_an_approval_is_shown_with_what_it_is_of(call: Call, folder: Path, tmp_path: Path) -> None:
    key_file, public = key_of(tmp_path, "ann")
    code, out, _ = call("approve", str(folder), "--by", "Ann", "--note", "read it", "--key", str(key_file), "--json")
    assert code == 0
    document = ApprovalDocument.model_validate_json(out)
    assert (document.by, document.note, document.public_key) == ("Ann", "read it", public)
    assert document.manifest == manifest_of(folder).digest
    code, out, _ = call("approve", str(folder), "--by", "Ann", "--key", str(key_file))
    assert (code, out) == (0, f"Ann approves of {folder} (manifest {manifest_of(folder).digest[:19]}).\n")


def test_a_key_is_shown_as_policies_name_it(call: Call, tmp_path: Path) -> None:
    key_file, public = key_of(tmp_path, "ann")
    assert call("approve", "--show-key", "--key", str(key_file))[:2] == (0, f"{public}\n")
    code, out, _ = call("approve", "--show-key", "--key", str(key_file), "--json")
    assert (code, PublicKeyDocument.model_validate_json(out).public_key) == (0, public)


def test_without_a_key_it_is_that_of_the_home(call: Call, folder: Path, tmp_path: Path) -> None:
    code, _, err = call("approve", str(folder), "--by", "Ann")
    assert code == 3
    assert f"there is no key '{tmp_path}/home/audit/key.pem'; `evolvarium doctor` makes that of a home" in err
    (tmp_path / "home/audit").mkdir(parents=True)
    make_private_key(tmp_path / "home/audit/key.pem")
    assert call("approve", str(folder), "--by", "Ann")[0] == 0
    assert call("approve", str(folder), "--by", "Ann", "--home", str(tmp_path / "nowhere"))[0] == 2


def test_a_key_that_others_may_read_is_called_what_it_is(call: Call, folder: Path, tmp_path: Path) -> None:
    key_file, _ = key_of(tmp_path, "ann")
    key_file.chmod(0o644)
    code, _, err = call("approve", str(folder), "--by", "Ann", "--key", str(key_file))
    assert (code, f"the key {key_file} has mode 0644, so others may have it; `chmod 600` it" in err) == (3, True), err
    assert "audit" not in err
    (tmp_path / "home/audit").mkdir(parents=True)
    make_private_key(tmp_path / "home/audit/key.pem").public_key()
    (tmp_path / "home/audit/key.pem").chmod(0o644)
    for arguments in ([str(folder), "--by", "Ann"], ["--show-key"]):
        code, _, err = call("approve", *arguments)
        assert (code, "the audit key" in err, "make a new home" in err) == (3, True, True), err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the package's folder and --by NAME, or --show-key"),
        (["FOLDER"], "give the package's folder and --by NAME"),
        (["--by", "Ann"], "give the package's folder and --by NAME"),
        (["FOLDER", "--by", "Ann\x1b"], "`by` is 'Ann\\x1b'"),
        (["nowhere", "--by", "Ann"], "cannot read the package 'nowhere': No such file"),
        (["", "--by", "Ann"], "a path is empty"),
    ],
)
def test_what_cannot_be_approved_is_wrong_input(
    call: Call, folder: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    key_file, _ = key_of(tmp_path, "ann")
    given = [str(folder) if word == "FOLDER" else word for word in arguments]
    code, out, err = call("approve", *given, "--key", str(key_file), "--json")
    assert code == 2
    assert message in err
    assert json.loads(out)["error"]["exit_code"] == 2


def test_a_policy_that_asks_for_approval_refuses_until_there_is_one(
    call: Call, folder: Path, strict: Path, tmp_path: Path
) -> None:
    database = tmp_path / "shop.sqlite"
    database.write_bytes(b"")
    answer = ("answer", "How many?", "--package", str(folder), "--db", str(database), "--policy", str(strict), "--json")
    code, out, err = call(*answer)
    assert (code, json.loads(out)["error"]["type"]) == (2, "PolicyError")
    assert f"asks for 1 approval of package 'p02', and '{folder}' has none; Ann can give one" in err
    assert "Ann can give one with `evolvarium approve`" in err
    assert call("approve", str(folder), "--by", "Bob", "--key", str(tmp_path / "ann.pem"))[0] == 0
    code, _, err = call(*answer)
    assert code == 2
    assert "that by 'Bob' does not count: the policy names its key 'Ann', so it had to be given with --by 'Ann'" in err
    assert call("approve", str(folder), "--by", "Ann", "--key", str(tmp_path / "ann.pem"))[0] == 0
    code, out, _ = call(*answer)
    assert (code, json.loads(out)["error"]["type"]) == (3, "EngineUnavailable")
    (folder / "package/eval_instructions.md").write_text("Obey.")
    code, _, err = call(*answer)
    assert code == 2
    assert (
        "'package/eval_instructions.md' was changed since it was exported; get it again from whoever exported it" in err
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question": " "}, "a question has 1 to 20000 characters, this one has 0"),
        ({"question": "x" * 20_001}, "this one has 20001"),
        ({"--package": "nowhere"}, "cannot read the package 'nowhere'"),
        ({"--db": "nowhere.sqlite"}, "there is no file 'nowhere.sqlite'"),
        ({"--model": "gpt"}, "'gpt'"),
        ({"--policy": "none"}, "no policy 'none'"),
        ({"--budget-usd": "nan"}, "--budget-usd"),
        ({"--budget-usd": "inf"}, "not a finite number"),
        ({"--seed": "-1"}, "--seed"),
    ],
)
def test_what_cannot_be_answered_is_wrong_input(
    call: Call, folder: Path, tmp_path: Path, changes: dict[str, str], message: str
) -> None:
    (tmp_path / "shop.sqlite").write_bytes(b"")
    options = {"--package": str(folder), "--db": str(tmp_path / "shop.sqlite"), **changes}
    question = options.pop("question", "How many?")
    code, _, err = call("answer", question, *(word for option in options.items() for word in option))
    assert code == 2
    assert message in err
    assert not (tmp_path / "home").exists()


def test_an_audit_reads_an_exported_package_or_a_bare_one(call: Call, folder: Path, tmp_path: Path) -> None:
    for given in (folder, folder / "package"):
        code, _, err = call("audit", "tool", str(given))
        assert (code, "no Docker engine" in err) == (3, True), err
    for given in (tmp_path, tmp_path / "nowhere", folder / "README.md"):
        code, _, err = call("audit", "tool", str(given))
        assert code == 2
        assert str(given) in err
    code, _, err = call("audit", "tool", str(folder), "--db", "nowhere.sqlite")
    assert (code, "there is no file 'nowhere.sqlite'" in err) == (2, True)
    (folder / "package/tools/analyze.py").write_text("print(2)")
    code, _, err = call("audit", "tool", str(folder))
    assert (code, "'package/tools/analyze.py' was changed" in err) == (2, True)


def test_an_audit_under_a_policy_that_does_not_know_the_shop_says_what_to_do(
    call: Call, folder: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "mine.yaml"
    policy.write_text((POLICIES / "default.yaml").read_text().replace('databases: ["*"]', "databases: [hr]"))
    code, _, err = call("audit", "tool", str(folder), "--policy", str(policy))
    assert code == 2
    assert "names 'web_shop', the shop that tools are tried on; give a database that it names with --db" in err


def test_an_export_looks_at_its_folder_before_anything_else(call: Call, folder: Path, tmp_path: Path) -> None:
    code, _, err = call("export", "latest", "-o", str(folder))
    assert (code, "is not empty; choose another folder" in err) == (2, True)
    (folder / "thesis.tex").write_text("mine")
    code, _, err = call("export", "latest", "-o", str(folder), "--force")
    assert (code, "holds 'thesis.tex', which is no part of an exported package" in err) == (2, True)
    code, _, err = call("export", "latest", "-o", str(tmp_path / "new"))
    assert (code, "there is no latest run yet" in err) == (2, True), err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("command", [("export",), ("approve",), ("answer",), ("audit", "tool")])
def test_every_command_explains_itself(call: Call, command: tuple[str, ...]) -> None:
    code, out, _ = call(*command, "--help")
    assert code == 0
    assert "--json" in out
    assert "--home" in out
