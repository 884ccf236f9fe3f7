"""Questions with databases, as they are published: BIRD's layout, Spider's, and a plain list as JSON lines."""

from orchestrator.sql.datasets.bird import load_bird
from orchestrator.sql.datasets.dataset import ColumnText, Dataset, Descriptions, describe_columns, unmatched
from orchestrator.sql.datasets.jsonl import load_jsonl
from orchestrator.sql.datasets.spider import load_spider

__all__ = [
    "ColumnText",
    "Dataset",
    "Descriptions",
    "describe_columns",
    "load_bird",
    "load_jsonl",
    "load_spider",
    "unmatched",
]
