"""A provider that serves nobody for a while: it is waited for without hammering it, and nothing is paid twice."""

from __future__ import annotations

import time

import pytest

from orchestrator.domain.conversation import Reply
from orchestrator.domain.model_access import Patience, Provider
from orchestrator.errors import LostInOutage, LostReply, ModelUnavailable
from orchestrator.llm.providers.circuit import Pace
from orchestrator.runtime.workers import Worker
from tests.model_lab import QUICK, model_at, model_lab
from tests.model_servers.base import Answer, Received, Trouble, Turn

both = pytest.mark.parametrize("provider", list(Provider), ids=str)
FINE = Turn(text="All is well.")
DOWN = Trouble(status=500)


def reply_of(worker: Worker[Reply]) -> str:
    return worker.result().message.text


@both
def test_a_server_that_is_down_for_a_moment_is_asked_again(provider: Provider) -> None:
    with model_lab(provider, [DOWN, DOWN, FINE]) as lab:
        assert lab.ask().message.text == "All is well."
        assert lab.calls == 3
        assert lab.notes == []


@both
def test_five_hundreds_without_end_pause_the_run(provider: Provider) -> None:
    with model_lab(provider, [DOWN], outage_seconds=0.8) as lab:
        workers = lab.ask_in_threads(6)
        for worker in workers:
            with pytest.raises(
                ModelUnavailable, match=r"has served nothing for .*500.*try again once the server is back"
            ):
                worker.result()
        assert lab.calls <= 10 + 6  # in flight until the fifth fails, then probes after 0.05, 0.1, 0.2, 0.2, ... s
        assert "has failed 5 times in a row" in lab.notes[0]


@both
def test_an_outage_that_is_waited_out_does_not_count_as_time_for_the_reply(provider: Provider) -> None:
    begun = time.monotonic()

    def script(_: Received) -> Answer:
        return FINE if time.monotonic() - begun > 1.5 else DOWN

    with model_lab(
        provider, script, request_seconds=1.2, pace=Pace(failures=2, first_pause=0.1, longest_pause=0.2)
    ) as lab:
        assert [reply_of(worker) for worker in lab.ask_in_threads(4)] == ["All is well."] * 4
        assert time.monotonic() - begun > 1.5
        assert "answers again" in lab.notes[-1]


@both
def test_who_does_not_wait_for_an_outage_is_not_told_of_a_wait(provider: Provider) -> None:
    with model_lab(provider, [DOWN], outage_seconds=0.0) as lab:
        with pytest.raises(ModelUnavailable, match=r"^\S+ does not serve \(last: HTTP 500.*try again"):
            lab.ask()
        assert lab.calls == 5
        assert [note.rpartition("; ")[2] for note in lab.notes] == ["the run does not wait"]


@both
def test_replies_that_are_lost_until_the_server_counts_as_down_pause_the_run(provider: Provider) -> None:
    broken = Trouble(drop_after=1, turn=FINE)
    with model_lab(provider, [broken], pace=Pace(failures=2, first_pause=0.05)) as lab:
        with pytest.raises(LostReply) as first:
            lab.ask()
        assert not isinstance(first.value, ModelUnavailable)
        for _ in range(2):  # the one that opens the breaker, and a probe
            with pytest.raises(LostInOutage, match=r"its reply is lost; \S+ serves nobody") as later:
                lab.ask()
            assert later.value.exit_code == 7
        assert lab.calls == 3


@both
def test_a_server_that_is_not_there_pauses_the_run(provider: Provider) -> None:
    with model_lab(provider, [FINE]) as gone:
        url = gone.server.url
    patience = Patience(outage_seconds=0.3)
    with (
        model_lab(provider, [FINE]) as running,
        model_at(running.server, provider, patience=patience, pace=QUICK, base_url=url) as lab,
        pytest.raises(ModelUnavailable, match=r"has served nothing .*cannot be reached"),
    ):
        lab.ask()


@both
def test_a_storm_of_429s_is_waited_out_by_all_threads_together(provider: Provider) -> None:
    begun = time.monotonic()

    def script(_: Received) -> Answer:
        is_over = time.monotonic() - begun > 0.9
        return FINE if is_over else Trouble(status=429, headers={"retry-after": "1"})

    with model_lab(provider, script) as lab:
        assert [reply_of(worker) for worker in lab.ask_in_threads(8)] == ["All is well."] * 8
        early = [request for request in lab.server.requests if request.at - begun < 0.9]
        assert len(early) <= 8  # none of them came a second time before its second was over
        assert lab.calls <= 16
        assert lab.notes == []


@both
def test_a_server_that_asks_to_wait_is_left_alone_for_as_long(provider: Provider) -> None:
    with model_lab(provider, [Trouble(status=429, headers={"retry-after": "1"}), FINE]) as lab:
        assert lab.ask().message.text == "All is well."
        first, second = lab.server.requests
        assert second.at - first.at >= 1.0


@both
def test_two_threads_at_the_same_instant_pay_once_each(provider: Provider) -> None:
    with model_lab(provider, [FINE]) as lab:
        usages = [worker.result().usage for worker in lab.ask_in_threads(2)]
        assert [usage.output_tokens for usage in usages] == [20, 20]
        assert lab.calls == 2


@both
def test_a_server_that_loses_every_reply_is_paid_for_no_further_ones(provider: Provider) -> None:
    pace = Pace(first_pause=30.0)
    with model_lab(provider, [Trouble(drop_after=2, turn=FINE)], outage_seconds=0.2, pace=pace) as lab:
        for _ in range(5):
            with pytest.raises(LostReply):
                lab.ask()
        for _ in range(3):
            with pytest.raises(ModelUnavailable, match="has served nothing for"):
                lab.ask()
        assert lab.calls == 5


@both
def test_a_wait_beyond_all_patience_is_not_begun(provider: Provider) -> None:
    with model_lab(provider, [Trouble(status=429, headers={"retry-after": "3600"})]) as lab:
        begun = time.monotonic()
        with pytest.raises(ModelUnavailable, match=r"asks to wait for another 60 min.*try again from .* UTC on"):
            lab.ask()
        assert time.monotonic() - begun < 1.0
        assert lab.calls == 1
        with pytest.raises(ModelUnavailable, match="asks to wait"):
            lab.ask()
        assert lab.calls == 1  # the server has said it once


@both
def test_too_many_requests_for_longer_than_a_reply_may_take_pause_the_run(provider: Provider) -> None:
    busy = Trouble(status=429, headers={"retry-after": "0"})
    with model_lab(provider, [busy], request_seconds=0.8, pace=Pace(failures=1000, first_pause=0.05)) as lab:
        with pytest.raises(ModelUnavailable, match=r"gave no answer within 0.8 s .*429"):
            lab.ask()
        assert lab.calls > 1
