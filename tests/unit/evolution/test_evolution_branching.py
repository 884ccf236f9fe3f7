"""A branch takes over exactly what was known when its first iteration began, however often the copy is cut off."""

from __future__ import annotations

import pytest

from orchestrator.bootstrap.robophd.branching import branch_evolution
from orchestrator.bootstrap.robophd.choices import Branch
from orchestrator.bootstrap.robophd.config_file import settings_from
from orchestrator.bootstrap.robophd.copying import COPIED, complete_copy, copy_until
from orchestrator.bootstrap.robophd.results import read_results
from orchestrator.bootstrap.robophd.running import Watch
from orchestrator.errors import InputError, RunStateError
from orchestrator.runtime.workers import CancelToken
from tests.memory_journal import Fuse, Killed, MemoryJournal
from tests.recorded_evolution import SETTINGS, RecordedEvolutions

THREE = SETTINGS.model_copy(update={"iterations": 3})


@pytest.fixture(scope="module")
def evolutions(tmp_path_factory: pytest.TempPathFactory) -> RecordedEvolutions:
    return RecordedEvolutions(tmp_path_factory.mktemp("evolutions"))


@pytest.fixture(scope="module")
def source(evolutions: RecordedEvolutions) -> str:
    """A run of three iterations."""
    return evolutions.made(THREE)


def copied(evolutions: RecordedEvolutions, source: str, iteration: int) -> MemoryJournal:
    target = MemoryJournal()
    with evolutions.store.open(source, read_only=True) as journal:
        copy_until(journal, target, iteration)
    return target


def test_everything_before_the_iteration_is_taken_and_nothing_after_it(
    evolutions: RecordedEvolutions, source: str
) -> None:
    target = copied(evolutions, source, 3)
    with evolutions.store.open(source, read_only=True) as journal:
        there = {key: dict(record) for key, record in journal.records()}
        expected = {
            key: record
            for key, record in there.items()
            if not key.startswith(("it/03/", "package/p03", "select/", "run"))
        }
        taken = {key: record for key, record in target.records() if key != COPIED}
        assert taken == expected
        assert list(taken) == list(expected), "in their order"
        assert {key.split("/")[0] for key in taken} == {"q", "it", "package", "tool", "answer"}
        for digest, content in target.blobs.items():
            assert journal.get_blob(digest) == content
        assert len(target.blobs) > 20


def test_what_was_not_recorded_to_its_end_is_left_behind() -> None:
    source, target = MemoryJournal(), MemoryJournal()
    source.put("it/01/end", {})
    source.put("answer/abc/q1/request/0001", {"reply": {}})
    source.put("answer/abc/q2/request/0001", {"reply": {}})
    source.put("answer/abc/q2", {"sql": "SELECT 1"})
    source.put("answer:other/abc/q3/request/0001", {"reply": {}})
    source.put("answer:other/abc/q3", {"sql": None})
    source.put("hybrid/abc/shop/request/0001", {"reply": {}})
    source.put("it/02/evolve/request/0001", {"reply": {}})
    source.put("final/opened", {})
    source.put("final/score/naive:offline", {})
    source.put("run/end", {"champion": "naive"})
    source.put("something/else", {})
    copy_until(source, target, 2)
    assert [*target.entries] == [
        "it/01/end",
        "answer/abc/q2/request/0001",
        "answer/abc/q2",
        "answer:other/abc/q3/request/0001",
        "answer:other/abc/q3",
        COPIED,
    ]


def test_a_copy_that_is_cut_off_goes_on_where_it_was(evolutions: RecordedEvolutions, source: str) -> None:
    whole = copied(evolutions, source, 3)
    branch = Branch(run=source, from_iteration=3)
    for touches in (1, 2, 41, 2 * len(whole.entries) - 1):
        target = MemoryJournal()
        target.fuse = Fuse(touches)
        with evolutions.store.open(source, read_only=True) as journal, pytest.raises(Killed):
            copy_until(journal, target, 3)
        target.fuse = Fuse()
        complete_copy(evolutions.store, branch, target)
        assert target.entries == whole.entries
        complete_copy(evolutions.store, branch, target)  # nothing is left to do


def test_a_branch_whose_source_is_gone_cannot_be_completed(evolutions: RecordedEvolutions) -> None:
    with pytest.raises(RunStateError, match="there is no run 'abcdefabcdef'"):
        complete_copy(evolutions.store, Branch(run="abcdefabcdef", from_iteration=2), MemoryJournal())
    complete_copy(evolutions.store, None, MemoryJournal())


def test_a_branch_shares_its_beginning_and_goes_its_own_way(evolutions: RecordedEvolutions, source: str) -> None:
    other = THREE.model_copy(update={"seed": 99})
    branch = evolutions.branched(source, 3, other)
    with evolutions.store.open(source, read_only=True) as one, evolutions.store.open(branch, read_only=True) as two:
        before, after = read_results(source, one), read_results(branch, two)
    assert after.data == before.data, "the databases stay dealt out as they were"
    assert after.iterations[:2] == before.iterations[:2]
    assert after.settings.seed == 99
    assert len(after.iterations) == 3


def test_a_branch_with_the_same_settings_comes_to_the_same_end(evolutions: RecordedEvolutions, source: str) -> None:
    branch = evolutions.branched(source, 2, THREE)
    with evolutions.store.open(source, read_only=True) as one, evolutions.store.open(branch, read_only=True) as two:
        before, after = read_results(source, one), read_results(branch, two)
        assert {key for key, _ in one.records()} | {COPIED} == {key for key, _ in two.records()}
    assert (after.iterations, after.champion, after.spent) == (before.iterations, before.champion, before.spent)


@pytest.mark.parametrize(
    ("iteration", "changes", "told"),
    [
        (1, [], "--from-iteration 1 keeps nothing"),
        (5, [], "has ended 3 iterations, so it cannot be branched from iteration 5; give at most 4"),
        (4, [], "would begin with iteration 4 and end with 3; give a higher --iterations"),
        (3, [("elo.k", 3)], "a branch keeps the settings 'elo'"),
        (3, [("elo.k", 3), ("answers.corrections", 0)], "a branch keeps the settings 'answers' and 'elo'"),
    ],
)
def test_what_cannot_be_branched_is_refused_before_anything_is_made(
    evolutions: RecordedEvolutions, source: str, iteration: int, changes: list[tuple[str, int]], told: str
) -> None:
    runs = evolutions.store.list()
    watch = Watch(token=CancelToken(), note=evolutions.notes.append)
    with pytest.raises(InputError) as error:
        branch_evolution(
            evolutions.places,
            source,
            iteration,
            watch,
            lambda settings: settings_from(settings.model_dump(mode="json"), changes),
        )
    assert told in str(error.value)
    assert evolutions.store.list() == runs
