"""A copy of an evolution's journal that tests may change, and final scores put into it by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from orchestrator.bootstrap.robophd.final import final_key
from orchestrator.bootstrap.robophd.results import EvolutionResults, read_results
from orchestrator.domain.conversation import Usage
from orchestrator.domain.records import to_record
from orchestrator.errors import RunStateError
from tests.memory_journal import MemoryJournal
from tests.recorded_evolution import RecordedEvolutions


class JournalCopy(MemoryJournal):
    """A journal in memory whose missing blobs are an error of the run's state, as on the disk."""

    def get_blob(self, digest: str) -> bytes:
        if digest not in self.blobs:
            msg = f"there is no blob {digest}"
            raise RunStateError(msg)
        return super().get_blob(digest)

    def change(self, key: str, record: Mapping[str, Any]) -> None:
        self.entries[key] = json.dumps(record)


def copy_of(evolutions: RecordedEvolutions, run_id: str) -> JournalCopy:
    """The records of a run with its packages' files."""
    copy = JournalCopy()
    with evolutions.store.open(run_id, read_only=True) as source:
        for key, record in source.records():
            copy.entries[key] = json.dumps(dict(record))
        for key, record in source.records("package/"):
            assert key
            for digest in record["files"].values():
                copy.put_blob(source.get_blob(digest))
    return copy


def final_record(package: str, model: str, right: Mapping[str, bool], groups: Mapping[str, str]) -> dict[str, Any]:
    return {
        "package": package,
        "model": model,
        "questions": {"museum": [[id_, groups[id_], right[id_]] for id_ in right]},
        "analyses": {"museum": "hybrid" if package == "p02" else "tool"},
        "requests": 8,
        "usage": to_record(Usage(input_tokens=900, output_tokens=100, usd=Decimal("0.08"))),
        "hybrid_usage": to_record(Usage(input_tokens=100, output_tokens=0, usd=Decimal("0.01"))),
    }


def with_finals(journal: JournalCopy, champion: Mapping[str, bool], groups: Mapping[str, str]) -> EvolutionResults:
    naive = dict.fromkeys(champion, False)
    journal.change(final_key("p02", "offline"), final_record("p02", "offline", champion, groups))
    journal.change(final_key("naive", "offline"), final_record("naive", "offline", naive, groups))
    other = final_record("p02", "offline/effort-0.5", naive, groups)
    journal.change(final_key("p02", "offline/effort-0.5"), other)
    return read_results("r", journal)
