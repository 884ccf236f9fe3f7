"""Options about models: in their own group of the help, on every command that asks models, and checked before work."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
import typer.main
from typer._click import Context

from orchestrator.cli.app import app
from orchestrator.cli.model_options import PANEL, access_given, price_given
from orchestrator.errors import InputError
from tests.in_process import Call, without_engine

SECRET = "sk-live-0123456789abcdef"
ASKING: list[tuple[str, ...]] = [(name,) for name in ("run", "resume", "final", "answer")]
ASKING += [("sql", name) for name in ("ask", "bench", "sweep", "evolve")]
OPTIONS = (
    "--models", "--base-url", "--key-env", "--price", "--chunk-seconds", "--request-seconds", "--outage-seconds",
)  # fmt: skip


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return without_engine(tmp_path / "home", monkeypatch, capsys)


@pytest.mark.parametrize("path", ASKING, ids=" ".join)
def test_every_command_that_asks_models_has_them_in_a_group_of_their_own(path: tuple[str, ...]) -> None:
    command = typer.main.get_command(app)
    for name in path:
        command = command.commands[name]  # type: ignore[attr-defined]
    usual, _, group = command.get_help(Context(command, terminal_width=80)).partition(f"\n{PANEL}:\n")
    for option in OPTIONS:
        assert f"  {option} " in group, option
        assert f"  {option} " not in usual, option
    assert "  --json " in usual


@pytest.mark.parametrize("path", [path for path in ASKING if path != ("resume",)], ids=" ".join)
def test_every_command_that_asks_models_takes_a_budget(path: tuple[str, ...]) -> None:
    command = typer.main.get_command(app)
    for name in path:
        command = command.commands[name]  # type: ignore[attr-defined]
    options = {option for parameter in command.params for option in parameter.opts}
    assert {"--budget-usd", "--budget-tokens"} <= options


def test_a_price_has_two_or_three_parts() -> None:
    short, long = price_given("1/2.5"), price_given(" 0.5 / 0.05 / 2 ")
    assert (short.input, short.cached_input, short.output) == (Decimal(1), None, Decimal("2.5"))
    assert (long.input, long.cached_input, long.output) == (Decimal("0.5"), Decimal("0.05"), Decimal(2))
    assert price_given("0/0").output == 0


@pytest.mark.parametrize("text", ["", "1", "1/2/3/4", "a/b", "1/-2", "1//2", "nan/1", "inf/1"])
def test_what_is_no_price_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(InputError, match="IN/CACHED/OUT or IN/OUT, in US dollars for a million tokens"):
        price_given(text)


@pytest.mark.parametrize(
    ("give", "said"),
    [
        (lambda: access_given(base_url="localhost:8000"), "--base-url must be http://HOST"),
        (lambda: access_given(base_url=f"http://u:{SECRET}@h/v1"), "--base-url must hold no user name, password"),
        (lambda: access_given(base_url="http://h:99999/v1"), "--base-url"),
        (lambda: access_given(key_env=SECRET), "--key-env takes the name of an environment variable, not a key"),
        (lambda: access_given(chunk_seconds=0), "--chunk-seconds 0: must be greater than 0"),
        (lambda: access_given(outage_seconds=-1), "--outage-seconds -1: must be at least 0"),
        (lambda: access_given(request_seconds=float("nan")), "--request-seconds nan"),
    ],
)
def test_a_value_that_is_none_is_refused_and_no_key_is_shown(give: Callable[[], object], said: str) -> None:
    with pytest.raises(InputError) as error:
        give()
    assert said in str(error.value)
    assert SECRET not in str(error.value)
    assert SECRET not in repr(error.value.__context__)


def test_commands_refuse_before_any_work(call: Call, tmp_path: Path) -> None:
    for options, said in (
        (("--model", "openai/m", "--policy", "strict"), "policy 'strict' does not let 'openai/m'"),
        (("--model", "opena/m"), "did you mean 'openai/m'?"),
        (("--model", "openai/m", "--price", "1"), "--price '1' is not"),
        (("--model", "offline", "--base-url", "http://127.0.0.1:9/v1"), "--base-url is where models named openai/NAME"),
        (("--model", "replay/x", "--price", "1/1"), "leave out --price"),
        (("--model", "openai/m", "--key-env", "A"), "key_env is the key for base_url"),
    ):
        code, out, err = call("run", "online_bin_packing", *options)
        assert (code, out) == (2, ""), options
        assert said in err, options
    assert not (tmp_path / "home").exists() or not list((tmp_path / "home").rglob("journal*"))


def test_an_evolution_and_a_question_ask_the_policy_for_their_own_roles(call: Call, tmp_path: Path) -> None:
    (tmp_path / "db.sqlite").write_bytes(b"")
    code, _, err = call("sql", "ask", "how many?", "--db", str(tmp_path / "db.sqlite"), "--policy", "strict",
                        "--model", "anthropic/claude-x", "--critic-model", "openai/m")  # fmt: skip
    assert code == 2
    assert "'anthropic/claude-x'" in err
    assert "as generator" in err
    assert "as critic" in err
    (tmp_path / "q.jsonl").write_text("")
    code, _, err = call("sql", "evolve", "--jsonl", str(tmp_path / "q.jsonl"), "--policy", "strict",
                        "--evolver-model", "openai/m", "--answer-model", "openai/n")  # fmt: skip
    assert code == 2
    assert "as evolver" in err
    assert "as answerer" in err


def test_exit_code_7_is_told_by_the_help(call: Call) -> None:
    code, out, _ = call("--help")
    assert code == 0
    assert "7 the provider of a model serves nobody and the run is paused" in " ".join(out.split())
