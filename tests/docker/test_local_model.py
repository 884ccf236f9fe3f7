"""A search with a real language model in real containers: a small one, which nobody has scripted, behind llama.cpp.

It finds nothing, and may end with idle turns. What is asserted are the books: everything is paid once, whatever dies.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.sandbox.images import ImageStore
from tests.command_line import CommandLine, Ended, wait_until
from tests.model_servers.base import KEY
from tests.model_servers.llama import MODEL, LlamaServer, Metered, missing_packages

pytestmark = [pytest.mark.docker, pytest.mark.slow]

SECONDS = 1200
RUN = (
    *("run", "online_bin_packing", "--public-seed", "--islands", "1", "--commits", "2", "--analyses", "1"),
    *("--final-splits", "none", "--model", f"openai/{MODEL}", "--json"),
)
PATIENCE = ("--chunk-seconds", "120", "--request-seconds", "600", "--outage-seconds", "300")


@pytest.fixture(scope="module")
def installation(home: Path, images: ImageStore, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    if (reason := missing_packages()) is not None:
        pytest.skip(reason)
    images.verify()
    return CommandLine.beside(home, tmp_path_factory.mktemp("installation"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LlamaServer]:
    with LlamaServer(tmp_path / "server.log", context_tokens=8192, slots=1) as server:
        yield server


@pytest.fixture
def models(tmp_path: Path, server: LlamaServer) -> str:
    """A file that keeps the model short."""
    entry = {
        "provider": "openai",
        "model": MODEL,
        "base_url": server.url,
        "key": {"env": "LLAMA_KEY"},
        "max_output_tokens": 96,
        "price": {"input": 1, "cached_input": 0.1, "output": 4},
    }
    file = tmp_path / "models.yaml"
    file.write_text(json.dumps({"models": {f"openai/{MODEL}": entry}}))
    return str(file)


@pytest.fixture
def has_key(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    def change(has: bool) -> None:
        if has:
            monkeypatch.setenv("LLAMA_KEY", KEY)
        else:
            monkeypatch.delenv("LLAMA_KEY", raising=False)

    return change


def finish(process: subprocess.Popen[str]) -> Ended:
    out, err = process.communicate(timeout=SECONDS)
    return Ended(process.returncode, out, err)


def answered(records: dict[str, Any]) -> dict[str, Any]:
    """The replies by their keys."""
    return {key: record["reply"] for key, record in records.items() if re.fullmatch(r"i\d+/request/\d+", key)}


def as_metered(usage: dict[str, Any]) -> Metered:
    return Metered(
        input_tokens=usage["input_tokens"],
        cached_tokens=usage["cached_input_tokens"],
        output_tokens=usage["output_tokens"],
    )


def total(replies: dict[str, Any]) -> Metered:
    usages = [as_metered(reply["usage"]) for reply in replies.values()]
    return Metered(
        input_tokens=sum(usage.input_tokens for usage in usages),
        cached_tokens=sum(usage.cached_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
    )


def assert_keeps_secret(installation: CommandLine, ended: Ended) -> None:
    assert KEY not in ended.out + ended.err
    for file in installation.home.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), f"{file} holds the key"


def test_every_request_is_paid_once_and_the_run_can_be_made_again_without_server_and_key(
    installation: CommandLine, server: LlamaServer, models: str, has_key: Callable[[bool], None]
) -> None:
    has_key(True)
    ended = finish(installation.start(*RUN, "--models", models, *PATIENCE, "--requests", "6", "--budget-usd", "1"))
    assert ended.code == 0, ended.err
    document = ended.document
    replies = answered(installation.records(document["run"]))
    assert document["state"] == "done"
    assert document["containers_left"] == 0
    assert 1 <= document["requests"] == len(replies) <= 6
    assert as_metered(document["usage"]) == total(replies) == server.metered()
    assert [line["lost"] for line in document["ledger"]] == [0]
    assert 0 < document["usage"]["usd"] < 1
    assert all(reply["message"]["text"] or reply["message"]["tool_calls"] for reply in replies.values())
    assert_keeps_secret(installation, ended)

    server.kill()
    has_key(False)
    resumed = installation.call("resume", document["run"], "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.document == document
    replayed = installation.call(
        *("run", "online_bin_packing", "--model", f"replay/{document['run']}", "--json"),
        DOCKER_HOST="unix:///nonexistent/engine.sock",
    )
    assert replayed.code == 0, replayed.err
    assert answered(installation.records(replayed.document["run"])) == replies
    for field in ("best", "evaluations", "analyses", "requests", "usage", "stops", "endings"):
        assert replayed.document[field] == document[field], field


def test_a_run_goes_on_when_its_server_has_died_and_when_it_has_died_itself(
    installation: CommandLine, server: LlamaServer, models: str, has_key: Callable[[bool], None]
) -> None:
    has_key(True)
    process = installation.start(*RUN, "--models", models, *PATIENCE, "--requests", "6")
    run_id = installation.new_run(process)
    wait_until(process, lambda: len(answered(installation.records(run_id))) >= 1)
    wait_until(process, lambda: not server.is_idle())
    server.kill()
    time.sleep(3)
    before = len(answered(installation.records(run_id)))
    assert process.poll() is None, "it waits"
    server.start()
    wait_until(process, lambda: len(answered(installation.records(run_id))) > before)
    process.kill()
    process.communicate(timeout=SECONDS)

    ended = finish(installation.start("resume", run_id, "--json"))
    assert ended.code == 0, ended.err
    document = ended.document
    records = installation.records(run_id)
    replies = answered(records)
    announced = [key for key in records if key.endswith("/sent")]
    void = [key for key in records if key.endswith("/void")]
    (line,) = document["ledger"]
    assert document["state"] == "done"
    assert line["requests"] == len(replies) <= 6
    assert as_metered(line["usage"]) == total(replies)
    assert line["lost"] == len(announced) - len(void) - len(replies), "all that was sent was answered, lost or void"
    assert 1 <= line["lost"] <= 3, "what the server was saying when it died, and what nobody was left to hear"
    assert document["containers_left"] == 0
    assert_keeps_secret(installation, ended)


def test_a_server_is_asked_how_much_it_takes_and_nothing_more_where_the_budget_does_not_cover_that(
    installation: CommandLine, server: LlamaServer, has_key: Callable[[bool], None]
) -> None:
    has_key(True)
    there = ("--base-url", server.url, "--key-env", "LLAMA_KEY")
    ended = installation.call(*RUN, *there, "--budget-tokens", "8000")
    assert ended.code == 4, ended.err
    assert ended.document["state"] == "budget-spent"
    assert "8192" in ended.err, "all of its context, for nobody says how much of it a reply may take"
    assert server.metered() == Metered(input_tokens=0, cached_tokens=0, output_tokens=0)


def test_a_wrong_key_and_a_server_that_is_gone_are_told_before_any_work(
    installation: CommandLine, server: LlamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = installation.runs()
    there = (*RUN, "--base-url", server.url, "--key-env", "LLAMA_KEY")
    monkeypatch.setenv("LLAMA_KEY", "sk-wrong-canary-51c0")
    refused = installation.call(*there)
    server.kill()
    gone = installation.call(*there)
    for ended, what in ((refused, "refuses the key in the environment variable LLAMA_KEY"), (gone, "does not serve")):
        assert ended.code == 3, ended.err
        assert what in ended.err
        assert "canary" not in ended.err
    assert installation.runs() == known
