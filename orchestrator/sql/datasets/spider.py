"""Spider (Yu et al. 2018, arXiv:1809.08887): its folder layout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.domain.sql import Question
from orchestrator.sql.datasets.dataset import Dataset
from orchestrator.sql.datasets.fields import Text
from orchestrator.sql.datasets.folder import DataFolder, entry_list, validated
from orchestrator.sql.datasets.layout import Layout, assemble, question_file

LAYOUT = Layout(
    name="spider",
    questions=("dev.json", "train_spider.json", "test.json"),
    databases=("database", "test_database", "databases"),
    tables=("tables.json", "test_tables.json"),
)


class _Entry(BaseModel):
    """A question as Spider writes it; its tokens and parsed query are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    db_id: Annotated[str, Field(max_length=1000)]
    question: Text
    query: Text | None = None


def load_spider(root: Path, questions: str | None = None) -> Dataset:
    """A data set in Spider's layout; a question's id is its place in the list, from 0.

    Args:
        root: The folder that holds the list of questions, `tables.json` and the folder of databases.
        questions: Name of the list; None: `dev.json`, or else `train_spider.json` or `test.json`.

    Raises:
        InputError: Something that is needed is missing or malformed; the message names file, entry and way out.
    """
    folder = DataFolder(root)
    source = question_file(folder, LAYOUT, questions)
    listed = entry_list(folder.read_json(source), source)
    found = [validated(_Entry, entry, f"{source}: entry {at}") for at, entry in enumerate(listed, 1)]
    asked = [
        Question(id=str(at), database=entry.db_id, text=entry.question, gold=entry.query)
        for at, entry in enumerate(found)
    ]
    return assemble(folder, LAYOUT, source, asked)
