"""The JSON documents of `evolvarium sql evolve`, and of `show`, `resume` and `final` for such a run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from orchestrator.cli.documents import Document, FileDocument, LedgerLine, UsageDocument
from orchestrator.cli.sql_documents import SqlLeftOut


class RatingDocument(Document):
    """A Bradley-Terry rating on the scale of Elo ratings."""

    rating: float
    low: float | None
    """Ends of the 95 % interval; null: the package was never compared with another."""
    high: float | None
    component: int
    """Ratings can be compared only between packages of one component."""


class PackageDocument(Document):
    """One package of the population."""

    id: str
    digest: str
    iteration: int
    """In which it was made; 0: it was there from the beginning."""
    parents: list[str]
    description: str
    rating: float
    """Elo."""
    bradley_terry: RatingDocument | None
    """Null: it was in no contest."""
    tests: int
    """Contests it took part in."""
    questions: int
    right: int
    select_right: int | None
    """On the selection databases; null: not scored there."""
    select_questions: int | None


class IterationDocument(Document):
    """One iteration."""

    iteration: int
    kind: Literal["standard", "challenger", "none"]
    strategy: str | None
    """Null: the round made no package."""
    newcomer: str | None
    """Null: there is none."""
    failure: str | None
    """Why its evolution made no package; null: it did, or there was none."""
    requests: int
    """Of the evolver."""
    databases: list[str]
    questions: int
    accuracy: dict[str, float]
    """By competitor, in the order in which they were chosen, 0 to 1; empty: the contest has not ended."""
    hybrid_analyses: int
    """Analyses that a model made because a tool failed."""
    analyses: int


class AdvantageDocument(Document):
    """How much more accurate a package is than another, paired by question; groups of equal gold queries resampled."""

    over: str
    """Id of the other package."""
    difference: float
    """In shares from -1 to 1."""
    low: float
    high: float
    """Ends of the 95 % interval."""
    half_width: float
    groups: int


class FinalScoreDocument(Document):
    """One package and answer model on the final databases."""

    package: str
    model: str
    right: int
    questions: int
    accuracy: float
    databases: dict[str, list[int]]
    """[right, questions] of each."""
    hybrid_databases: int
    """Where the tool failed and a model made up for it."""
    requests: int
    usage: UsageDocument
    tokens_per_question: float
    usd_per_question: float | None
    """Null: a price is unknown."""
    hybrid_share: float | None
    """Part of the tokens that went into making up for failed tools; null: no token was used."""
    advantages: list[AdvantageDocument]
    """Over the packages that the run began with, with the same model."""


class RoleSpendDocument(Document):
    """What one role, or everything on the final databases, has spent, by the replies that are recorded."""

    requests: int
    usage: UsageDocument


class BranchDocument(Document):
    """Where a run comes from."""

    run: str
    from_iteration: int
    """The first one that was made anew."""
    after_final: bool
    """Whether the final databases had been opened there: whoever branched it may have known the figures."""


class EvolutionDocument(Document):
    """A run of `sql evolve`."""

    run: str
    method: Literal["robophd"]
    state: Literal["done", "budget-spent", "paused", "unfinished"]
    pause: str | None = None
    """Why it is paused: a model's provider serves nobody; null: it is not."""
    seed: int
    models: dict[str, str]
    """Role to model."""
    policy: str
    databases: dict[str, list[str]]
    """`evolve`, `select` and `final`."""
    branch: BranchDocument | None
    """Null: it began on its own."""
    standings: dict[str, int]
    """How many questions can be evaluated (`evaluable`), and how many cannot, by reason; of those whose gold queries
    have run, which those on the final databases do only with `final`."""
    left_out: list[SqlLeftOut]
    """The questions that cannot."""
    iterations: list[IterationDocument]
    of_iterations: int
    packages: list[PackageDocument]
    """Best rating first."""
    champion: str | None
    """Null: the run has not ended."""
    finals: list[FinalScoreDocument]
    """Empty: the final databases have not been opened."""
    spent: dict[str, RoleSpendDocument]
    """By role (`evolver`, `hybrid`, `answerer`) in the evolution; `final`: by all roles on the final databases."""
    ledger: list[LedgerLine] = Field(default=[])
    """What was spent on models, by role and model, on all databases; a branch begins with what it took over."""
    lost: int | None
    """Calls in flight when a process ended, charged at their worst case; null: not known without resuming the run."""
    refusal: str | None
    """What the budget did not cover; null: it sufficed, or the run was only looked at."""
    containers_left: int | None
    """Null: not looked."""


class DatabaseScoreDocument(Document):
    """One package on one database."""

    database: str
    purpose: Literal["evolve", "select"]
    right: int
    """In all contests, or on selection."""
    questions: int
    tool: str
    """`ok`, how the tool failed, or `unknown`."""


class EvolvedPackageDocument(Document):
    """`show RUN ID` of an evolution: one package with its files."""

    run: str
    package: PackageDocument
    is_champion: bool
    databases: list[DatabaseScoreDocument]
    finals: list[FinalScoreDocument]
    files: list[FileDocument]


class ReplayDocument(Document):
    """`sql evolve --replay RUN`: everything came out as it was recorded."""

    run: str
    iterations: int
    packages: int
    champion: str
    ratings: dict[str, float]
    """Elo, by package."""
    requests: int
    usage: UsageDocument
    lost: int


class FinalDocument(Document):
    """`final`."""

    run: str
    champion: str
    databases: list[str]
    scores: list[FinalScoreDocument]
