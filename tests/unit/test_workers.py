"""Threads end, exceptions arrive, and a wish to stop reaches everybody."""

from __future__ import annotations

import threading
import time

import pytest

from orchestrator.errors import Cancelled, ModelError
from orchestrator.runtime.deadlines import Deadline
from orchestrator.runtime.workers import CancelToken, WorkerGroup, spawn


def test_a_worker_hands_over_what_its_target_returned() -> None:
    worker = spawn("adder", lambda: 1 + 1)
    assert worker.join(5)
    assert worker.result() == 2
    assert worker.error is None


def test_a_worker_keeps_the_exception_until_its_result_is_asked_for() -> None:
    def fail() -> None:
        raise ModelError("no answer")

    worker = spawn("failing", fail)
    assert worker.join(5)
    with pytest.raises(ModelError, match="no answer"):
        worker.result()


def test_asking_for_the_result_of_a_live_worker_is_an_error() -> None:
    release = threading.Event()
    worker = spawn("waiting", release.wait)
    assert not worker.join(0.01)
    with pytest.raises(RuntimeError, match="'waiting' has not ended"):
        worker.result()
    release.set()
    assert worker.join(5)


def test_a_worker_cannot_keep_the_process_alive() -> None:
    seen = spawn("thread kind", lambda: threading.current_thread().daemon)
    assert seen.join(5)
    assert seen.result()


def test_a_token_wakes_its_waiters_at_once() -> None:
    token = CancelToken()
    worker = spawn("sleeper", lambda: token.wait(60))
    begun = time.monotonic()
    token.cancel("enough")
    assert worker.join(5)
    assert time.monotonic() - begun < 5
    with pytest.raises(Cancelled, match="enough"):
        worker.result()


def test_a_token_that_nobody_cancelled_only_sleeps() -> None:
    token = CancelToken()
    token.wait(0)
    token.wait(0.01)
    token.check()
    assert not token.is_cancelled
    assert token.reason == ""


def test_callbacks_run_once_and_only_while_their_block_lasts() -> None:
    token = CancelToken()
    calls: list[str] = []
    with token.on_cancel(lambda: calls.append("gone")):
        pass
    with token.on_cancel(lambda: calls.append("here")):
        token.cancel("first")
        token.cancel("second")
    assert calls == ["here"]
    assert token.reason == "first"


def test_a_callback_runs_at_once_when_the_token_is_cancelled_already() -> None:
    token = CancelToken()
    token.cancel()
    calls: list[int] = []
    with token.on_cancel(lambda: calls.append(1)):
        assert calls == [1]


def test_a_failing_callback_does_not_keep_the_others_from_running() -> None:
    token = CancelToken()
    calls: list[int] = []

    def fail() -> None:
        raise OSError("gone")

    failing, other = token.on_cancel(fail), token.on_cancel(lambda: calls.append(1))
    with failing, other, pytest.raises(ExceptionGroup, match="1 callbacks failed"):
        token.cancel()
    assert calls == [1]


def test_many_cancellers_call_a_callback_once() -> None:
    token = CancelToken()
    calls: list[int] = []
    barrier = threading.Barrier(8)

    def cancel() -> None:
        barrier.wait(5)
        token.cancel()

    with token.on_cancel(lambda: calls.append(1)):
        workers = [spawn(f"canceller {n}", cancel) for n in range(8)]
        assert all(worker.join(5) for worker in workers)
    assert calls == [1]


def test_a_group_waits_for_all_its_workers() -> None:
    with WorkerGroup("islands", limit=3, token=CancelToken()) as group:
        workers = [group.spawn(str(n), lambda n=n: (time.sleep(0.02 * n), n)[1]) for n in range(3)]
    assert not any(worker.is_alive for worker in workers)
    assert [worker.result() for worker in workers] == [0, 1, 2]


def test_the_first_failure_stops_the_other_workers_and_is_raised() -> None:
    def fail() -> None:
        raise ModelError("dead endpoint")

    def run() -> None:
        with WorkerGroup("islands", limit=3, token=CancelToken()) as group:
            waiting = [group.spawn(str(n), lambda: group.token.wait(60)) for n in range(2)]
            group.spawn("bad", fail)
            others.extend(waiting)

    others: list[object] = []
    with pytest.raises(ModelError, match="dead endpoint"):
        run()
    assert len(others) == 2


def test_an_outer_token_reaches_the_workers_of_a_group() -> None:
    token = CancelToken()
    seen: list[str] = []

    def work(group: WorkerGroup) -> None:
        with pytest.raises(Cancelled, match="Ctrl-C"):
            group.token.wait(60)
        seen.append("ended")

    def run() -> None:
        with WorkerGroup("islands", limit=1, token=token) as group:
            group.spawn("one", lambda: work(group))
            token.cancel("Ctrl-C")

    with pytest.raises(Cancelled, match="Ctrl-C"):
        run()
    assert seen == ["ended"]


def test_an_exception_in_the_block_stops_the_workers_and_is_not_hidden() -> None:
    workers = []

    def run() -> None:
        with WorkerGroup("islands", limit=1, token=CancelToken()) as group:
            workers.append(group.spawn("one", lambda: group.token.wait(60)))
            raise ModelError("in the block")

    with pytest.raises(ModelError, match="in the block"):
        run()
    assert not workers[0].is_alive


def test_a_group_never_has_more_live_workers_than_its_limit() -> None:
    lock = threading.Lock()
    live = peak = 0

    def work() -> None:
        nonlocal live, peak
        with lock:
            live += 1
            peak = max(peak, live)
        time.sleep(0.005)
        with lock:
            live -= 1

    with WorkerGroup("background", limit=2, token=CancelToken()) as group:
        for n in range(10):
            group.spawn(str(n), work)
    assert peak == 2


def test_workers_that_do_not_end_are_named() -> None:
    release = threading.Event()

    def run() -> None:
        with WorkerGroup("stuck", limit=1, token=CancelToken(), stop_seconds=0.05, patience_seconds=0.05) as group:
            group.spawn("deaf", lambda: release.wait(10))

    with pytest.raises(RuntimeError, match=r"did not end within 0\.05 s.*stuck/deaf"):
        run()
    release.set()


def test_a_group_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="positive limit, got 0"):
        WorkerGroup("none", limit=0, token=CancelToken())


def test_deadlines_pass_and_never_leave_negative_time() -> None:
    assert Deadline.after(-1).has_passed
    assert Deadline.after(-1).remaining_seconds == 0
    later = Deadline.after(100)
    assert not later.has_passed
    assert 99 < later.remaining_seconds <= 100
    assert later.at_most(5) == 5
    assert Deadline.after(1) < later


@pytest.mark.parametrize("seconds", [float("inf"), float("nan")])
def test_a_deadline_that_never_comes_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="finite number of seconds"):
        Deadline.after(seconds)
