"""The demo shop: its content, its traps, and every gold query."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.domain.data_access import access_of, find_rule
from orchestrator.errors import InputError
from orchestrator.evaluation.tasks import find_tasks
from orchestrator.sandbox.policy_files import load_policy
from orchestrator.sql.datasets import Dataset, load_jsonl
from orchestrator.sql.demo import Demo, write_demo
from orchestrator.sql.schema_text import Style, render
from tests.unit.sql.made import schema_of

ROOT = Path(__file__).parents[3]
CONTENT = "7851590646ae8298052ea017cd9775c439fb9e86d9b08e69850eecd4ba15c344"
EMPTY = {"Give the names of all products on the wish lists."}
NEEDS_HIDDEN = {
    "What is the role of Lea Brandt?",
    "How many customers have an email address at post.example?",
    "What is the email address of the supplier Papierhaus?",
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return write_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def dataset(demo: Demo) -> Dataset:
    return load_jsonl(demo.questions)


@pytest.fixture
def shop(demo: Demo) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"file:{demo.database}?mode=ro", uri=True)
    connection.text_factory = bytes
    yield connection
    connection.close()


def content_digest(connection: sqlite3.Connection) -> str:
    """Over statements and rows, whatever the file's pages look like."""
    hashed = hashlib.sha256()
    for name, sql in connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"):
        hashed.update(sql)
        if sql.startswith((b"CREATE TABLE", b"CREATE VIEW")):
            rows = connection.execute(f'SELECT * FROM "{name.decode()}"').fetchall()  # noqa: S608 - ours
            hashed.update("\n".join(sorted(map(repr, rows))).encode())
    return hashed.hexdigest()


def test_the_content_is_the_same_everywhere(shop: sqlite3.Connection) -> None:
    assert content_digest(shop) == CONTENT


def test_the_demo_is_no_task_package() -> None:
    assert all("web_shop" not in name for name in find_tasks([ROOT / "tasks"]))


def test_what_is_there_is_never_overwritten(demo: Demo, tmp_path: Path) -> None:
    before = demo.database.read_bytes()
    with pytest.raises(InputError, match=r"cannot write the demo into .*; choose a new folder"):
        write_demo(demo.database.parent)
    assert demo.database.read_bytes() == before
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot write the demo"):
        write_demo(tmp_path / "file" / "below")


def test_the_questions_are_a_data_set_of_sixty(dataset: Dataset, demo: Demo) -> None:
    assert dataset.databases == {"web_shop": demo.database}
    assert dataset.orphans == ()
    assert len(dataset.questions) == len({question.text for question in dataset.questions}) == 60
    assert Counter(question.difficulty for question in dataset.questions) == {"easy": 20, "medium": 24, "hard": 16}


def test_every_gold_query_runs_and_three_at_most_are_empty(dataset: Dataset, shop: sqlite3.Connection) -> None:
    empty = {question.text for question in dataset.questions if not shop.execute(question.gold or "").fetchall()}
    assert empty == EMPTY


def test_no_gold_answer_depends_on_the_order_of_rows(dataset: Dataset, shop: sqlite3.Connection) -> None:
    for question in dataset.questions:
        gold = question.gold or ""
        rows = []
        for reverse in (0, 1):
            shop.execute(f"PRAGMA reverse_unordered_selects = {reverse}")
            rows.append(shop.execute(gold).fetchall())
        if "ORDER BY" in gold:
            assert rows[0] == rows[1], question.text
        assert Counter(rows[0]) == Counter(rows[1]), question.text


def test_the_shop_holds_a_trap_for_every_rule(shop: sqlite3.Connection) -> None:
    kinds = Counter(kind for (kind,) in shop.execute("SELECT type FROM sqlite_schema"))
    assert (kinds[b"table"], kinds[b"view"], kinds[b"trigger"]) == (16, 3, 1)
    statements = b"".join(sql for (sql,) in shop.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"))
    for trap in (
        b"WITHOUT ROWID",
        b"GENERATED ALWAYS",
        b"STORED",
        b"VIRTUAL",
        b'"order"',
        b'"Product Returns"',
        b"brands",
    ):
        assert trap in statements
    bodies = [body for (body,) in shop.execute("SELECT body FROM reviews WHERE body IS NOT NULL")]
    assert sum(b"\n" in body for body in bodies) >= 2
    for trap in (
        b"Ignore all previous instructions",
        b"```",
        b"DELETE FROM",
        b'"It\'s fine."',
        b"\xe2\x80\xa8",
        b"\xe8",
    ):
        assert any(trap in body for body in bodies), trap
    figures = {
        "SELECT count(*) FROM reviews WHERE typeof(body) <> 'text' AND body IS NOT NULL": 0,
        "SELECT count(*) > 0 FROM products WHERE typeof(photo) = 'blob'": 1,
        "SELECT count(*) > 0 FROM customers WHERE first_name <> trim(first_name)": 1,
        "SELECT count(*) FROM warehouses WHERE city <> trim(city)": 2,
        "SELECT count(*) FROM wishes": 0,
    }
    assert {sql: shop.execute(sql).fetchone()[0] for sql in figures} == figures
    assert shop.execute("PRAGMA foreign_key_check(orders)").fetchall() == []
    assert shop.execute("PRAGMA integrity_check").fetchall() == [(b"ok",)]


def test_the_policy_keeps_emails_cards_and_staff_back(dataset: Dataset, demo: Demo) -> None:
    policy = load_policy(ROOT / "policies" / "web_shop.yaml")
    found = find_rule(policy.data, "web_shop")
    assert found is not None
    schema = schema_of(sqlite3.connect(demo.database))
    access = access_of(*found, schema)
    hidden = {f"{column.table}.{column.column}" for column in access.hidden}
    assert {name for name in hidden if not name.startswith("staff.")} == {
        "suppliers.email", "customers.email", "payments.card_number", "email_changes.old_email",
        "customer_contacts.email",
    }  # fmt: skip
    assert access.reason("customers", "EMAIL") == "data rule 1, redact *.email"
    assert access.reason("staff", "password_hash") == "data rule 1, deny staff"
    assert find_rule(policy.data, "another") is None
    needy = {q.text for q in dataset.questions if "email" in (q.gold or "") or "staff" in (q.gold or "")}
    assert needy == NEEDS_HIDDEN


def test_the_policy_grants_what_the_default_one_does() -> None:
    shop, default = (load_policy(ROOT / "policies" / f"{name}.yaml") for name in ("web_shop", "default"))
    assert (shop.purposes, shop.disclosure) == (default.purposes, default.disclosure)


def test_the_shops_schema_fits_into_a_prompt_in_every_style(demo: Demo) -> None:
    schema = schema_of(sqlite3.connect(demo.database))
    for style in Style:
        text = render(schema, style, max_characters=20_000)
        assert '"Loyalty Level"' in text
        assert "left out" not in text
