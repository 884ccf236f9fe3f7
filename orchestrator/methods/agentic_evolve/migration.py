"""Ring migration: what an island is shown of its neighbours, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.domain.budgets import Account, Spend
from orchestrator.methods.agentic_evolve.archive import IslandArchive
from orchestrator.methods.agentic_evolve.context import RunContext
from orchestrator.methods.agentic_evolve.entries import Entry, fitness_of, load_entry
from orchestrator.search.islands import ring_neighbours
from orchestrator.search.migration import select_migrants


class Migration:
    """One island's side of it. Not thread-safe."""

    def __init__(self, context: RunContext, island: int, archive: IslandArchive) -> None:
        self._context = context
        self._island = island
        self._archive = archive
        self._neighbours = ring_neighbours(island, context.settings.islands)

    def after_commit(self, commits: int) -> list[Entry] | None:
        """Publish the island's elites, and after every interval take in the neighbours'.

        Args:
            commits: Evaluated commits of the island so far.

        Returns:
            Candidates not shown before, best first; None: it is not time for a migration.

        Raises:
            Cancelled: Somebody asked to stop.
            EvolvariumError: The neighbours took longer than the deadline.
        """
        interval = self._context.settings.migration_interval
        migration = commits // interval
        is_due = bool(self._neighbours) and commits % interval == 0
        self._context.exchange.publish(self._island, self._archive.emigrants(), migration=migration if is_due else None)
        if not is_due:
            return None
        record = self._context.step(
            f"i{self._island}/migration/{migration:02d}",
            lambda: self._choose(migration),
            spend=Spend(),
            account=Account(role="migration", island=self._island),
        )
        entries = [load_entry(entry_id, self._context.ports.journal) for entry_id in record["shown"]]
        for entry in entries:
            self._archive.show(entry)
        return entries

    def stop(self) -> None:
        """Leave the island's final elites to the neighbours."""
        self._context.exchange.stop(self._island, self._archive.emigrants())

    def _choose(self, migration: int) -> Mapping[str, Any]:
        settings, exchange, task = self._context.settings, self._context.exchange, self._context.task
        elites = exchange.now(self._neighbours) if settings.async_islands else exchange.at(self._neighbours, migration)
        pool = sorted(elites, key=lambda entry: entry.age)
        chosen = select_migrants(
            pool, fraction=settings.migration_fraction, fitness=lambda entry: fitness_of(entry, task)
        )
        return {"shown": [entry.id for entry in chosen if entry.id not in self._archive.shown]}
