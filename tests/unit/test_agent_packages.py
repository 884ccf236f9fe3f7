"""Agent packages: what belongs to one, and what makes two of them the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.domain.agent_packages import (
    MAX_TEXT_BYTES,
    MAX_TOOL_FILES,
    AgentPackage,
    Manifest,
    manifest_bytes,
)
from orchestrator.errors import InputError

MANIFEST: dict[str, Any] = {"version": 1, "command": ["tools/analyze.py"], "output": "tool_output/analysis.md"}


def files(**more: bytes) -> dict[str, bytes]:
    return {
        "agent.json": json.dumps(MANIFEST).encode(),
        "eval_instructions.md": b"Be exact.",
        "tools/analyze.py": b"print(1)\n",
    } | more


def with_manifest(**changes: Any) -> dict[str, bytes]:
    return files(**{"agent.json": json.dumps(MANIFEST | changes).encode()})


def test_a_package_gives_what_is_in_it() -> None:
    found = AgentPackage.load(files(**{"tools/more_2.py": b"x = 1\n", "reasoning.md": "Because é.".encode()}))
    assert found.manifest.command == ("tools/analyze.py",)
    assert found.manifest.output == "tool_output/analysis.md"
    assert (found.instructions, found.reasoning) == ("Be exact.", "Because é.")
    assert dict(found.tool_files) == {"tools/analyze.py": b"print(1)\n", "tools/more_2.py": b"x = 1\n"}
    assert AgentPackage.load(files()).reasoning == ""


def test_everything_but_the_reasoning_makes_a_difference() -> None:
    plain = AgentPackage.load(files()).digest
    assert plain.startswith("sha256:")
    assert len(plain) == 71
    assert AgentPackage.load(files(**{"reasoning.md": b"Because."})).digest == plain
    others = [
        files(**{"eval_instructions.md": b"Be brief."}),
        files(**{"tools/analyze.py": b"print(2)\n"}),
        files(**{"tools/more.py": b""}),
        with_manifest(output="stdout"),
    ]
    digests = {AgentPackage.load(other).digest for other in others}
    assert len(digests) == len(others)
    assert plain not in digests


def test_a_manifest_is_written_as_it_is_read() -> None:
    manifest = Manifest(command=("tools/analyze.py", "--sample", "é"), output="stdout")
    assert AgentPackage.load(files(**{"agent.json": manifest_bytes(manifest)})).manifest == manifest


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"version": 2}, "agent.json", id="version"),
        pytest.param({"command": []}, "agent.json", id="no command"),
        pytest.param({"command": ["analyze.py"]}, "must begin with a file like", id="not a tool"),
        pytest.param({"command": ["tools/../analyze.py"]}, "must begin with a file like", id="up"),
        pytest.param({"command": ["/bin/sh", "-c", "id"]}, "must begin with a file like", id="a shell"),
        pytest.param({"command": ["tools/sub/analyze.py"]}, "must begin with a file like", id="below"),
        pytest.param({"command": ["tools/analyze.py", "a\nb"]}, "cannot be printed", id="line end"),
        pytest.param({"command": ["tools/analyze.py", "\ud800"]}, "agent.json", id="surrogate"),
        pytest.param({"command": ["tools/analyze.py"] * 17}, "agent.json", id="many arguments"),
        pytest.param({"command": ["tools/analyze.py", "x" * 201]}, "agent.json", id="long argument"),
        pytest.param({"command": ["tools/other.py"]}, "'tools/other.py', which is not among the files", id="no file"),
        pytest.param({"output": "/etc/passwd"}, "agent.json", id="absolute"),
        pytest.param({"output": "../x"}, "agent.json", id="outside"),
        pytest.param({"output": ""}, "agent.json", id="empty"),
        pytest.param({"output": "tools/analyze.py"}, "would replace what the tool is given", id="the tool"),
        pytest.param({"output": "tools"}, "would replace what the tool is given", id="the folder"),
        pytest.param({"output": "database.sqlite"}, "would replace what the tool is given", id="the database"),
        pytest.param({"shell": True}, "agent.json", id="unknown field"),
    ],
)
def test_a_manifest_that_asks_for_something_else_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        AgentPackage.load(with_manifest(**changes))


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'{"version": 1}', b"[" * 100_000])
def test_a_manifest_that_cannot_be_read_is_refused_by_name(content: bytes) -> None:
    with pytest.raises(InputError, match=r"agent\.json"):
        AgentPackage.load(files(**{"agent.json": content}))


@pytest.mark.parametrize("missing", ["agent.json", "eval_instructions.md", "tools/analyze.py"])
def test_a_package_that_lacks_a_file_is_refused(missing: str) -> None:
    content = files()
    del content[missing]
    with pytest.raises(InputError, match=r"tool files|has no|not among"):
        AgentPackage.load(content)


@pytest.mark.parametrize(
    "strange", ["README.md", "tools/data.json", "tools/sub/x.py", "tools/1.py", "tools/a-b.py", "x.py", "tools/.x.py"]
)
def test_a_file_that_does_not_belong_to_a_package_is_refused_by_name(strange: str) -> None:
    with pytest.raises(InputError, match=strange):
        AgentPackage.load(files(**{strange: b""}))


def test_texts_are_utf_8_and_bounded() -> None:
    AgentPackage.load(files(**{"eval_instructions.md": b"x" * MAX_TEXT_BYTES}))
    with pytest.raises(InputError, match=r"'eval_instructions\.md' has 262145 bytes"):
        AgentPackage.load(files(**{"eval_instructions.md": b"x" * (MAX_TEXT_BYTES + 1)}))
    for path in ("eval_instructions.md", "tools/analyze.py", "reasoning.md"):
        with pytest.raises(InputError, match=path):
            AgentPackage.load(files(**{path: b"\xff\xfe"}))


def test_the_number_of_tools_is_bounded() -> None:
    many = {f"tools/t{n}.py": b"" for n in range(MAX_TOOL_FILES)}
    with pytest.raises(InputError, match=f"{MAX_TOOL_FILES + 1} tool files"):
        AgentPackage.load(files(**many))
