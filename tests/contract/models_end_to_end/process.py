"""A run in a process of its own, to be killed: `process.py PROVIDER URL JOURNAL MEASURED`."""

from __future__ import annotations

import sys
from pathlib import Path

from orchestrator.domain.budgets import Budget
from orchestrator.domain.model_access import Provider
from orchestrator.runtime.ledger import Ledger
from orchestrator.storage.journal import SqliteJournal
from tests.contract.models_end_to_end.world import CONTEXT_TOKENS, PATIENCE, RememberingBench, opened, run
from tests.model_lab import entry_for


def main(provider: Provider, url: str, path: Path, measured: Path) -> None:
    entry = entry_for(provider, url, context_tokens=CONTEXT_TOKENS)
    with SqliteJournal(path) as journal:
        model = opened(provider, entry, PATIENCE, lambda _: None)
        run(journal, model, RememberingBench.load(measured), Ledger(Budget()))


if __name__ == "__main__":
    main(Provider(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
