"""Where keys come from, and what is said where there is none that can be used."""

from __future__ import annotations

import os
import pickle
import traceback
from pathlib import Path

import pytest

from orchestrator.domain.model_access import KeySource
from orchestrator.errors import PrerequisiteError
from orchestrator.llm.providers.keys import read_key
from orchestrator.llm.providers.wire import Secret
from tests.model_servers.base import KEY


def key_file(folder: Path, content: bytes, mode: int = 0o600) -> KeySource:
    path = folder / "key"
    path.write_bytes(content)
    path.chmod(mode)
    return KeySource(file=str(path))


def revealed(source: KeySource, environment: dict[str, str] | None = None) -> str:
    secret = read_key(source, environment or {})
    assert secret is not None
    return secret.reveal()


def complaint(source: KeySource, environment: dict[str, str] | None = None) -> str:
    """What is said; neither it nor its traceback, chained exceptions included, may hold the key."""
    with pytest.raises(PrerequisiteError) as raised:
        read_key(source, environment or {})
    assert KEY not in "".join(traceback.format_exception(raised.value))
    context = raised.value.__context__
    assert context is None or KEY not in repr(vars(context)) + repr(context.args)
    return str(raised.value)


def test_no_source_is_no_key() -> None:
    assert read_key(None, {"OPENAI_API_KEY": KEY}) is None


def test_a_variable_holds_it() -> None:
    assert revealed(KeySource(env="MY_KEY"), {"MY_KEY": KEY}) == KEY


@pytest.mark.parametrize("mode", [0o600, 0o400])
@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
def test_a_file_that_nobody_else_reads_holds_it(tmp_path: Path, mode: int, ending: bytes) -> None:
    assert revealed(key_file(tmp_path, KEY.encode() + ending, mode)) == KEY


def test_a_link_to_such_a_file_is_as_good(tmp_path: Path) -> None:
    key_file(tmp_path, KEY.encode())
    (tmp_path / "link").symlink_to(tmp_path / "key")
    assert revealed(KeySource(file=str(tmp_path / "link"))) == KEY


@pytest.mark.parametrize(("environment", "state"), [({}, "not set"), ({"MY_KEY": ""}, "empty")])
def test_a_variable_that_holds_none_is_named(environment: dict[str, str], state: str) -> None:
    said = complaint(KeySource(env="MY_KEY"), environment)
    assert said.startswith(f"MY_KEY is {state}; set it to the key (export MY_KEY=...)")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610, 0o644])
def test_a_file_that_others_get_at_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    source = key_file(tmp_path, KEY.encode(), mode)
    assert f"(mode {mode:03o}); run `chmod 600 {source.file}`" in complaint(source)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    source = key_file(tmp_path, KEY.encode())
    os.chown(source.file or "", 12345, 12345)
    assert "belongs to another user (uid 12345)" in complaint(source)


def test_what_is_no_file_is_refused_by_its_kind(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe", 0o600)
    expected = {".": "it is a folder", "missing": "it is missing", "link": "it is a link to nothing"}
    for name, reason in {**expected, "pipe": "not a regular file", "missing/key": "it is missing"}.items():
        source = KeySource(file=str(tmp_path / name))
        assert reason in complaint(source)
        assert repr(str(tmp_path / name)) in complaint(source)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (KEY.encode() + b"\n\n", "characters that are in no key"),
        (KEY.encode() + b"\nX-Other: 1", "characters that are in no key"),
        (KEY.encode() + b" two", "characters that are in no key"),
        (KEY.encode() + b"\0", "characters that are in no key"),
        (KEY.encode() + "ü".encode(), "characters that are in no key"),
        (KEY.encode() + b"\xff\xfe", "characters that are in no key"),
        (KEY.encode() * 300, "over 4096 bytes"),
    ],
)
def test_what_no_header_can_hold_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    assert reason in complaint(key_file(tmp_path, content))


@pytest.mark.parametrize("value", [f"{KEY}\n\n", f"{KEY} two", f"{KEY}ü", KEY + "\udcff", KEY * 300])
def test_so_it_is_in_a_variable(value: str) -> None:
    assert "the environment variable MY_KEY" in complaint(KeySource(env="MY_KEY"), {"MY_KEY": value})


def test_a_secret_shows_itself_nowhere() -> None:
    secret = Secret(KEY)
    assert KEY not in f"{secret} {secret!r} {[secret]}"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(secret)
