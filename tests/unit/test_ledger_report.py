"""The ledger of a recorded run: who spent what, read from any journal, and how it is shown."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bootstrap.spending import read_ledger
from orchestrator.cli.history import read_view
from orchestrator.cli.ledger import all_tokens, ledger_lines, ledger_rows, token_row, usage_document
from orchestrator.cli.main import execute
from orchestrator.cli.summaries import run_document, run_parts
from orchestrator.domain.budgets import Account
from orchestrator.domain.conversation import AssistantMessage, Reply, StopReason, Usage
from orchestrator.domain.records import to_record
from orchestrator.errors import RunStateError
from orchestrator.evaluation.tasks import load_task
from orchestrator.search.spending import Spending, read_spending
from orchestrator.storage.journal import SqliteJournal
from orchestrator.storage.runs import RunStore
from tests.memory_journal import MemoryJournal
from tests.recorded_runs import Recording

ROOT = Path(__file__).parents[2]
SONNET, HAIKU = "anthropic/claude-sonnet-5-5", "anthropic/claude-haiku-5-5"
ONE = Usage(
    input_tokens=10, cached_input_tokens=200, cache_write_tokens=30, output_tokens=40, reasoning_tokens=25,
    usd=Decimal("0.01"),
)  # fmt: skip
WORST = Usage(input_tokens=300, output_tokens=1000, usd=Decimal("0.5"))
UNKNOWN = Usage(input_tokens=300, output_tokens=1000, usd=None)


def answered(usage: Usage, account: Account | None = None) -> dict[str, Any]:
    reply = Reply(message=AssistantMessage(text="so"), usage=usage, stop=StopReason.END)
    return {"reply": to_record(reply), **named(account)}


def announced(usage: Usage, account: Account | None = None) -> dict[str, Any]:
    return {"conversation": "sha256:0", "reserved": to_record(usage), **named(account)}


def named(account: Account | None) -> dict[str, Any]:
    return {} if account is None else {"account": to_record(account)}


def agent(island: int, model: str = SONNET) -> Account:
    return Account(role="agent", model=model, island=island)


def journal_of(records: Mapping[str, Mapping[str, Any]]) -> MemoryJournal:
    journal = MemoryJournal()
    for key, record in records.items():
        journal.put(key, record)
    return journal


def test_spending_is_added_up_by_role_model_and_island() -> None:
    ledger = read_ledger(
        journal_of(
            {
                "run": {"model": "crew"},
                "i1/request/0001/sent": announced(WORST, agent(1)),
                "i1/request/0001": answered(ONE, agent(1)),
                "i0/request/0001": answered(ONE, agent(0)),
                "i0/request/0002": answered(ONE, agent(0, HAIKU)),
                "i0/request/0003": answered(ONE, agent(0)),
                "i0/analysis/0001": {"result": {}},
            }
        )
    )
    assert [(one.account, one.requests, one.usage, one.lost) for one in ledger] == [
        (agent(0, HAIKU), 1, ONE, 0),
        (agent(0), 2, ONE + ONE, 0),
        (agent(1), 1, ONE, 0),
    ]


def test_a_call_without_outcome_is_lost_and_stands_apart() -> None:
    ledger = read_ledger(
        journal_of(
            {
                "i0/request/0001/sent": announced(WORST, agent(0)),
                "i0/request/0001/2/sent": announced(WORST, agent(0)),
                "i0/request/0001": answered(ONE, agent(0)),
                "i0/request/0002/sent": announced(UNKNOWN, agent(0)),
            }
        )
    )
    assert ledger == (Spending(account=agent(0), requests=1, usage=ONE, lost=2, lost_usage=WORST + UNKNOWN),)
    assert ledger[0].whole.usd is None


def test_a_retracted_call_a_free_one_and_a_refused_one_are_not_lost() -> None:
    ledger = read_ledger(
        journal_of(
            {
                "i0/request/0001/sent": announced(WORST, agent(0)),
                "i0/request/0001/void": {},
                "i0/request/0002/sent": announced(Usage(), agent(0)),
                "i0/request/0003/sent": announced(WORST, agent(0)),
                "i0/request/0003": {"context_too_long": "300000 > 200000", **named(agent(0))},
            }
        )
    )
    assert ledger == ()


def test_a_call_lost_before_a_retracted_one_stays_lost_when_another_model_answers() -> None:
    records = {
        "i0/request/0001/sent": announced(WORST, agent(0)),
        "i0/request/0001/2/sent": announced(WORST, agent(0)),
        "i0/request/0001/2/void": {},
        "i0/request/0001": answered(ONE, agent(0)),
    }
    (one,) = read_ledger(journal_of(records))
    assert (one.requests, one.lost, one.lost_usage) == (1, 1, WORST)


def test_records_without_an_account_fall_back_to_the_models_of_the_header() -> None:
    search = {"run": {"model": SONNET}, "i2/request/0001": answered(ONE), "i2/request/0002/sent": announced(WORST)}
    assert read_ledger(journal_of(search)) == (
        Spending(account=agent(2), requests=1, usage=ONE, lost=1, lost_usage=WORST),
    )
    bench = {
        "run": {"kind": "sql-bench", "models": {"generator": SONNET, "critic": HAIKU}},
        "q/17/elicit/request/0001": answered(ONE),
        "q/17/evosql/r1/aggregate/request/0001": answered(ONE),
        "q/17/evosql/r0/critic/request/0001": answered(ONE),
        "q/17/evosql/choose/request/0001": answered(ONE),
    }
    assert _by_account(bench) == {("critic", HAIKU): 2, ("generator", SONNET): 2}
    sweep = {
        "run": {"kind": "sql-sweep", "datasets": [{"conditions": {"models": bench["run"]["models"]}}]},
        "d1/f2/q/17/elicit/request/0001": answered(ONE),
        "d1/f2/q/17/e003/r1/critic/request/0001": answered(ONE),
    }
    assert _by_account(sweep) == {("critic", HAIKU): 1, ("generator", SONNET): 1}
    evolution = {
        "run": {"kind": "robophd", "models": {"evolver": SONNET, "answerer": HAIKU}},
        "it/2/evolve/request/0001": answered(ONE),
        "hybrid/0123456789abcdef/shop/request/0001": answered(ONE),
        "answer/0123456789abcdef/spider:17/request/0001": answered(ONE),
        "answer:offline/0123456789abcdef/spider:17/request/0001": answered(ONE),
    }
    assert _by_account(evolution) == {
        ("answerer", HAIKU): 1, ("answerer", "offline"): 1, ("evolver", SONNET): 1, ("hybrid", HAIKU): 1,
    }  # fmt: skip


def _by_account(records: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str | None], int]:
    return {(one.account.role, one.account.model): one.requests for one in read_ledger(journal_of(records))}


def test_what_an_account_is_for_is_called_alike_with_and_without_one_in_the_record() -> None:
    header = {"kind": "sql-bench", "models": {"generator": SONNET, "critic": SONNET}}
    keys = {
        "q/1/elicit/request/0001": "elicit",
        "q/1/evosql/r1/aggregate/request/0001": "evosql/aggregate",
        "q/1/evosql/r1/critic/request/0001": "evosql/critic",
    }
    without = read_ledger(journal_of({"run": header, **{key: answered(ONE) for key in keys}}))
    accounts = {key: Account(role=role, model=SONNET) for key, role in keys.items()}
    records = {key: answered(ONE, account) for key, account in accounts.items()}
    assert read_ledger(journal_of({"run": header, **records})) == without
    assert [one.account.role for one in without] == ["critic", "generator"]


def test_calls_of_a_live_run_are_in_flight_and_those_it_made_again_are_lost() -> None:
    records = {
        "i0/request/0001/sent": announced(WORST, agent(0)),
        "i0/request/0001/2/sent": announced(WORST, agent(0)),
        "i0/request/0002/sent": announced(ONE, agent(0)),
        "i0/request/0002/void": {},
        "i0/request/0003/sent": announced(WORST, agent(0)),
        "i0/request/0003/2/sent": announced(WORST, agent(0)),
        "i0/request/0003": answered(ONE, agent(0)),
    }
    (live,) = read_spending(records.items(), lambda _, named: named or agent(9), is_live=True)
    assert (live.in_flight, live.in_flight_usage) == (1, WORST)
    assert (live.lost, live.lost_usage) == (2, WORST + WORST)
    (dead,) = read_ledger(journal_of(records))
    assert (dead.in_flight, dead.lost) == (0, 3)
    assert live.whole == dead.whole


LIVE = """
import sys
from pathlib import Path
from orchestrator.storage.journal import SqliteJournal
from tests.unit.test_ledger_report import WORST, agent, announced
with SqliteJournal(Path(sys.argv[1])) as journal:
    journal.put("i0/request/0001/sent", announced(WORST, agent(0)))
    print("announced", flush=True)
    sys.stdin.read()
"""


def test_the_ledger_of_a_run_that_another_process_goes_on_with_shows_its_calls_in_flight(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    owner = subprocess.Popen(
        [sys.executable, "-c", LIVE, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    with owner:
        assert owner.stdin is not None
        assert owner.stdout is not None
        assert owner.stdout.readline() == "announced\n"
        with SqliteJournal(path, read_only=True) as journal:
            (while_it_lives,) = read_ledger(journal)
        owner.stdin.close()
    with SqliteJournal(path, read_only=True) as journal:
        (afterwards,) = read_ledger(journal)
    assert (while_it_lives.in_flight, while_it_lives.lost) == (1, 0)
    assert (afterwards.in_flight, afterwards.lost) == (0, 1)
    with SqliteJournal(path) as journal:  # by whoever goes on with it: its own calls have not begun
        assert [one.lost for one in read_ledger(journal)] == [1]


def test_calls_in_flight_have_columns_of_their_own() -> None:
    (line,) = ledger_lines([Spending(account=agent(0), in_flight=1, in_flight_usage=WORST)])
    assert (line.in_flight, line.in_flight_usage.output_tokens, line.lost) == (1, 1000, 0)
    (table,) = ledger_rows([line])
    assert table.title == "Spent on models (1 call in flight, at the most it can cost)"
    assert list(table.columns)[-2:] == ["in flight", "in flight US dollars"]
    assert list(table.rows[0])[-2:] == [1, "0.5000"]
    assert "lost" not in table.columns


@pytest.mark.parametrize(
    ("key", "record"),
    [
        ("i0/request/0001", {"reply": "none"}),
        ("i0/request/0001", {"reply": {"usage": {"input_tokens": "many"}}}),
        ("i0/request/0001/sent", {"conversation": "sha256:0"}),
        ("i0/request/0001", {**answered(ONE), "account": ["agent"]}),
    ],
)
def test_a_damaged_record_is_named(key: str, record: Mapping[str, Any]) -> None:
    with pytest.raises(RunStateError, match=f"record of '{key}' is damaged"):
        read_spending([(key, record)], lambda _, named: named or agent(0))


def test_the_ledger_of_a_run_adds_up_to_what_the_run_used(tmp_path: Path) -> None:
    run_id = Recording.of(tmp_path, load_task(ROOT / "tasks" / "online_bin_packing")).made()
    with RunStore(tmp_path).open(run_id, read_only=True) as journal:
        view = read_view(run_id, journal)
    document = run_document(view)
    assert [(line.role, line.model, line.island) for line in document.ledger] == [
        ("agent", "offline", 0),
        ("agent", "offline", 1),
    ]
    assert sum(line.requests for line in document.ledger) == document.requests
    assert sum(all_tokens(line.usage) for line in document.ledger) == all_tokens(document.usage) > 0
    assert sum((one.whole for one in view.ledger), Usage()) == view.history.total.usage
    titles = [table.title for table in run_parts(view, document)]
    assert "Spent on models" in titles


def test_a_report_holds_the_ledger_of_every_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EVOLVARIUM_HOME", str(tmp_path))
    task = load_task(ROOT / "tasks" / "online_bin_packing")
    first, second = Recording.of(tmp_path, task).made(), Recording.of(tmp_path, task, seed=2).made()
    assert execute(["report", first, second, "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [line["island"] for column in runs for line in column["run"]["ledger"]] == [0, 1, 0, 1]
    assert execute(["report", first, second]) == 0
    printed = capsys.readouterr().out
    assert f"Run {first}: spent on models" in printed
    assert f"Run {second}: spent on models" in printed


def test_kinds_of_tokens_that_few_providers_have_are_shown_only_where_there_are_any() -> None:
    assert token_row(usage_document(Usage(input_tokens=1, output_tokens=3))) == [
        "tokens: input, cached, output", "1, 0, 3",
    ]  # fmt: skip
    assert token_row(usage_document(ONE)) == [
        "tokens: input, cached, written to a cache, output, of it reasoning", "10, 200, 30, 40, 25",
    ]  # fmt: skip
    assert all_tokens(usage_document(ONE)) == ONE.tokens == 280


def test_the_table_has_a_column_for_everything_there_is_and_no_other() -> None:
    plain = Spending(account=Account(role="critic", model=HAIKU), requests=2, usage=Usage(input_tokens=7, usd=None))
    (table,) = ledger_rows(ledger_lines([plain]))
    assert list(table.columns) == ["role", "model", "requests", "input", "cached", "output", "US dollars"]
    assert list(table.rows[0]) == ["critic", HAIKU, 2, 7, 0, 0, "unknown"]
    full = Spending(account=agent(1), requests=1, usage=ONE, lost=1, lost_usage=WORST)
    (table,) = ledger_rows(ledger_lines([full, plain]), "a1b2")
    assert list(table.columns) == [
        "role", "model", "island", "requests", "input", "cached", "written", "output", "reasoning", "US dollars",
        "lost", "lost US dollars",
    ]  # fmt: skip
    assert list(table.rows[0]) == ["agent", SONNET, 1, 1, 10, 200, 30, 40, 25, "0.0100", 1, "0.5000"]
    assert table.title.startswith("Run a1b2: spent on models (1 call lost")
    assert ledger_rows([]) == []
