"""The functions of SQLite that a query may call; everything else is refused by name.

From https://sqlite.org/lang_corefunc.html and the pages beside it. Not among them: what loads code
(`load_extension`), hands out pointers (`fts3_tokenizer`), tells of the library or the connection (`sqlite_...`,
`changes`, `last_insert_rowid`) or reads its settings (`pragma_...`).
"""

from __future__ import annotations

_SCALAR = """
abs char coalesce concat concat_ws format glob hex if ifnull iif instr length like likelihood likely lower ltrim match
max min nullif octet_length printf quote random randomblob regexp replace round rtrim sign soundex substr substring
trim typeof unhex unicode unistr unistr_quote unlikely upper zeroblob
date time datetime julianday unixepoch strftime timediff current_date current_time current_timestamp
acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi pow power
radians sin sinh sqrt tan tanh trunc
json jsonb json_array jsonb_array json_array_length json_error_position json_extract jsonb_extract json_insert
jsonb_insert json_object jsonb_object json_patch jsonb_patch json_pretty json_quote json_remove jsonb_remove
json_replace jsonb_replace json_set jsonb_set json_type json_valid
"""
_AGGREGATE = """
avg count group_concat max min string_agg sum total median percentile percentile_cont percentile_disc
json_group_array jsonb_group_array json_group_object jsonb_group_object
row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
"""
_TABLE_VALUED = "json_each json_tree jsonb_each jsonb_tree"

CALLABLE = frozenset(f"{_SCALAR} {_AGGREGATE} {_TABLE_VALUED}".split())
"""In lower case. One that the library at hand lacks is SQLite's to refuse."""
