"""Statements that the tests of the gate share, and a database to run them on."""

from __future__ import annotations

import sqlite3

from orchestrator.sql.gate import Refusal, check

WRITES = [
    "insert into t values (1, 2)",
    "insert or replace into t select 1, 2",
    "replace into t values (1, 2)",
    "update t set a = 1",
    "delete from t",
    "delete from t returning a",
    "create table x(a)",
    "create temp table t as select 1 as a where 0",
    "create view v as select 1",
    "create index i on t(a)",
    "create trigger r after insert on t begin select 1; end",
    "create virtual table f using fts5(a)",
    "alter table t rename to s",
    "drop table t",
    "pragma query_only = 0",
    "pragma writable_schema(1)",
    "attach 'x.db' as x",
    "detach x",
    "vacuum",
    "vacuum into 'copy.db'",
    "reindex",
    "analyze",
    "begin exclusive",
    "commit",
    "end",
    "rollback",
    "savepoint a",
    "release a",
    "values (1)",
]
"""One of every kind that is not one read-only query, and VALUES, which no question needs."""

_QUERIES = r"""
select x'ab', 0x1F, 1e5, .5, 5., 'it''s', "a", [a], `a` from t
select a as "b c", a 'd', a e from t
select a from t union select b from u order by 1 limit 2
select a from t union all select b from u intersect select 1 except values (2)
with x(a) as not materialized (select 1), y as materialized (select * from x) select * from y, x
with recursive c(x) as (values(1) union all select x + 1 from c where x < 5) select * from c
select * from t natural join u left outer join u as v on 1 cross join t as w
select t.a from t join u using (a) join u as v join t as w join t as x join t as y join t as z
select cast(a as varchar(10)), cast(a as double precision), a isnull, b notnull, a not null from t
select a ->> 'x', a -> '$.y', (1, 2) = (3, 4) from t where a glob 'a*' and b like 'x%' escape '\'
select rank() over (partition by a order by b rows between 1 preceding and current row) from t
select sum(a) over w, avg(b) over (w order by a) from t window w as (partition by b)
select sum(a) over (order by b groups between unbounded preceding and 1 following exclude ties) from t
select count(*) filter (where a > 1), count(distinct b), total(a) from t group by b having count(*) > 0
select a from t not indexed where a not between 1 and 2
select iif(a, b, 1), substr(a, 1, 2), strftime('%Y', a), date('now', '+1 day'), julianday(a), unixepoch() from t
select date(datetime(date(datetime(date(datetime(date(datetime(date(datetime(date(a))))))))))) from t
select j.value from t, json_each('[1]') as j where j.key = 0
select current_timestamp, current_date, current_time, a collate nocase from t order by a collate binary asc
select * from (t join u on t.a = u.a) join t as v
select main.t.a, "t"."a", `t`.`b`, [t].[a], t.* from main.t
select 1 where 1 in (select 1) and 2 not in (1, 2) and 3 in () and (1, 2) in (select 1, 2) and 1 in t2
select not exists (select 1), exists (select 1 from t where t.a = 1), (((select 2)))
select count(distinct a), group_concat(a, ', ') from t
select a == b, a <> b, a != b, a is b, a is not b, a is not distinct from b, a is null, a is not null from t
select a from t limit 5, 10
select a from t order by a limit 2 - (select count(*) from t) % 2 offset (select (count(*) - 1) / 2 from t)
select a from t limit 10 % 3, 7 % 2
select a from t limit 1 or 0 offset 1 + 1
select a from t limit (select 2) offset 1
select -1, +1, ~1, not 1, - -1, 1 - -2, a % 2, a / 2, a || b, a & 1, a | 1, a << 1, a >> 1 from t
select case a when 1 then 2 else 3 end, case when a > 1 then 'x' end from t
select a from t where a like '%;%' and b = '; drop table t; --'
select a as fetch, a as qualify, a as pivot, a as any, a as date, a as text, a as row, a as end from t lateral
select "count"(*), [max](a) from 't'
select /* ; */ replace(a, 'x', 'y'), like('a', a), glob('a', a) from t
select true, false, null
"""
QUERIES = _QUERIES.strip().split("\n")
"""Each with a feature or two of SQLite; all of them run on `database()`."""


def database() -> sqlite3.Connection:
    """Three small tables in memory; the table functions are used once, as SQLite writes when it first meets them."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(
        "create table t(a, b); create table u(a, b, c); create table t2(a); insert into t values (1, 2)"
    )
    connection.execute("select 1 from json_each('[]'), json_tree('[]')").fetchall()
    return connection


def reason_to_refuse(sql: str) -> str | None:
    """What the gate says; None: it lets the text through."""
    try:
        check(sql)
    except Refusal as refusal:
        return refusal.reason
    return None
