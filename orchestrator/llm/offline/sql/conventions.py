"""Conventions: how an ambiguous question is answered, as instructions for the answerer say it in plain English.

Which reading of a question is the right one often depends on nothing but a data set's habits: one row or all that tie,
names or ids, rows or different values. Without a rule the engine takes its plain default. This table is all there is:
what a rule is called, how it may be phrased, and what it changes; `effects` holds the changes themselves.
"""

from __future__ import annotations

from orchestrator.llm.offline.sql.convention import Convention

_SUPERLATIVE = (
    r"superlative|extreme|highest|lowest|largest|smallest|maximum|minimum|\bmost\b|\bleast\b|\bmax\b|\bmin\b|oldest"
    r"|youngest|\bbest\b|\btop\b|\bfirst\b|\brank"
)


CONVENTIONS: tuple[Convention, ...] = (
    Convention(
        id="superlative-limit",
        sentence="For a superlative (highest, most, oldest), sort with ORDER BY and keep one row with LIMIT 1.",
        effect="One row for the extreme, even where several tie.",
        key=r"\blimit 1\b|\b(?:only|just|exactly|a single|one) (?:one )?row\b",
        about=_SUPERLATIVE + r"|\bties?\b",
        opposite="superlative-ties",
    ),
    Convention(
        id="superlative-ties",
        sentence="For a superlative, return all rows that tie: compare with a MAX or MIN subquery.",
        effect="All rows with the extreme value.",
        key=r"\bties?\b|\btied\b|\bsubquery\b|= ?\( ?select (?:max|min)|\ball rows (?:that|which|with)\b",
        about=_SUPERLATIVE + r"|\bties?\b|\btied\b",
        opposite="superlative-limit",
    ),
    Convention(
        id="count-distinct",
        sentence="When counting entities or values, use COUNT(DISTINCT column).",
        effect="Counts different values, or different rows of the table asked for where tables are joined.",
        key=r"\bcount ?\( ?distinct\b|\bcount (?:the )?(?:distinct|different|unique)\b",
        opposite="count-rows",
    ),
    Convention(
        id="count-rows",
        sentence="Count rows with COUNT(*), unless the question says different or distinct.",
        effect="Counts rows, never different values, where the question does not ask for those.",
        key=r"\bcount ?\( ?\*? ?\)|\bcount (?:all |the )?rows\b",
        opposite="count-distinct",
    ),
    Convention(
        id="distinct-lists",
        sentence="When listing values of a column, use SELECT DISTINCT so that none is repeated.",
        effect="Lists have DISTINCT.",
        key=r"\bselect distinct\b|\buse distinct\b|\bduplicates?\b.{0,40}\b(?:remove|eliminate|drop)|\b(?:remove"
        r"|eliminate"
        r"|deduplicate|avoid|no)\b.{0,20}\bduplicates?\b|\bdistinct\b.{0,30}\blist|\blist.{0,60}\bdistinct\b",
        opposite="keep-duplicates",
    ),
    Convention(
        id="keep-duplicates",
        sentence="Keep duplicates: leave DISTINCT out unless the question says different, distinct or unique.",
        effect="Lists have DISTINCT only where the question asks for it.",
        key=r"\b(?:keep|preserve|leave) (?:all )?(?:the )?duplicates?\b|\bdistinct only (?:when|if|where)\b"
        r"|\b(?:leave|omit) (?:out )?distinct\b",
        opposite="distinct-lists",
    ),
    Convention(
        id="only-asked",
        sentence="Return only the columns that the question asks for, and nothing else.",
        effect="Columns that the question does not name are not returned: no measures, no group names, no ids.",
        key=r"\bonly (?:the )?(?:requested|asked|needed|required|necessary|specified)? ?(?:columns?|fields?|values?)\b"
        r".{0,60}|\b(?:extra|additional|unrequested|unnecessary|unneeded) (?:columns?|fields?|outputs?)\b",
        about=r"\bonly\b|\bask|\brequest|\bextra\b|\badditional\b|\bun",
        opposite="with-measure",
    ),
    Convention(
        id="with-measure",
        sentence="Also return the number that rows are ranked, grouped or compared by.",
        effect="The count or measure of an ORDER BY or HAVING stands beside what is asked for.",
        key=r"\b(?:also|always|additionally) (?:return|include|show|select|output) (?:the )?(?:number|count|measure"
        r"|aggregate|value)\b|\b(?:include|return|show) the (?:measure|count|ranking value|sort key)\b",
        opposite="only-asked",
    ),
    Convention(
        id="names-not-ids",
        sentence="When the question asks which entity, return its name, not its id.",
        effect="A key that the question does not name is replaced by the column that names the row.",
        key=r"\b(?:names?|titles?|labels?)\b.{0,40}\b(?:not|rather than|instead of|over|never)\b.{0,25}\b(?:ids?|keys?"
        r"|identifiers?)\b|\b(?:prefer|return|show|use) (?:the )?(?:human.?readable )?names?\b.{0,40}\b(?:entit|which"
        r"|who)",
        opposite="ids-not-names",
    ),
    Convention(
        id="ids-not-names",
        sentence="When the question asks which entity and names no column, return its id, not its name.",
        effect="The key of the table stands for a row where the question names no column.",
        key=r"\b(?:ids?|keys?|identifiers?)\b.{0,40}\b(?:not|rather than|instead of|over|never)\b.{0,25}\b(?:names?"
        r"|titles?)\b",
        about=r"\breturn|\bshow|\bselect|\boutput|\bask",
        opposite="names-not-ids",
    ),
    Convention(
        id="full-names",
        sentence="When the name of a person is asked for, return the first name and the last name.",
        effect="A first name comes with the last name.",
        key=r"\b(?:first|given)[- ]?(?:name)?\b.{0,25}\b(?:last|family|sur)[- ]?names?\b|\bfull names?\b",
        about=r"\bnames?\b",
        opposite="first-names",
    ),
    Convention(
        id="first-names",
        sentence="When the name of a person is asked for, return the first name alone.",
        effect="A first name comes without the last name, where that is not asked for.",
        key=r"\bfirst[- ]names? (?:alone|only)\b|\bonly (?:the )?first[- ]names?\b",
        opposite="full-names",
    ),
    Convention(
        id="group-first",
        sentence="In an answer per group, put the grouping column before the aggregate.",
        effect="Grouping columns come first.",
        key=r"\bgroup\w*\b.{0,40}\b(?:before|first|precedes?)\b|\baggregates?\b.{0,30}\b(?:after|last)\b",
        about=r"\bcolumns?\b|\bkeys?\b|\baggregate|\bcount",
        opposite="group-last",
    ),
    Convention(
        id="group-last",
        sentence="In an answer per group, put the aggregate before the grouping column.",
        effect="Aggregates come first.",
        key=r"\b(?:aggregates?|counts?)\b.{0,40}\b(?:before|first|precedes?)\b|\bgroup\w*\b.{0,30}\b(?:after|last)\b",
        about=r"\bcolumns?\b|\bkeys?\b|\baggregate|\bcount",
        opposite="group-first",
    ),
    Convention(
        id="asked-order",
        sentence="Return the columns in the order in which the question mentions them.",
        effect="Output columns come in the question's order.",
        key=r"\border\b.{0,40}\b(?:question|mention|asked|request)\w*|\bsame order as\b",
        about=r"\bcolumns?\b|\bfields?\b|\boutputs?\b",
    ),
    Convention(
        id="evidence-literally",
        sentence="Use the evidence literally: its formulas, columns and values as they are written.",
        effect="Formulas and conditions of the evidence are used wherever they can be read.",
        key=r"\b(?:evidence|hint|external knowledge)\b.{0,60}\b(?:literal|exact|verbatim|as (?:it is )?(?:written"
        r"|given)"
        r"|formula|precise|strict|follow)\w*|\b(?:follow|apply|use|trust)\b.{0,30}\b(?:evidence|hint"
        r"|external knowledge)\b",
    ),
    Convention(
        id="percent-hundred",
        sentence="Compute a percentage as 100.0 * part / whole.",
        effect="Percentages run to 100, and the division is one of real numbers.",
        key=r"\b100(?:\.0)? ?\*|\* ?100\b|\bmultipl\w+ (?:it )?by 100\b",
        opposite="percent-fraction",
    ),
    Convention(
        id="percent-fraction",
        sentence="Return a percentage as a fraction between 0 and 1.",
        effect="Percentages run to 1.",
        key=r"\bfractions?\b|\bbetween 0 and 1\b",
        about=r"\bpercent|\bratio|\bproportion|\bshare",
        opposite="percent-hundred",
    ),
    Convention(
        id="exact-values",
        sentence="Compare text with = and the value exactly as the analysis lists it.",
        effect="Equality with known values, never LIKE where the question does not ask for a part of a text.",
        key=r"\b(?:exact|exactly|verbatim|equality)\b.{0,80}\b(?:values?|text|spell|listed|case|match)\w*"
        r"|\b(?:values?|text)\b.{0,60}\b(?:exact|exactly|verbatim|as (?:listed|stored|spelled))\b",
        about=r"\bvalues?\b|\btext\b|\bstring",
        opposite="like-values",
    ),
    Convention(
        id="like-values",
        sentence="Compare text values with LIKE '%value%' rather than with =.",
        effect="Equality of text becomes LIKE with wildcards.",
        key=r"\b(?:compare|match|filter)\w*\b.{0,40}\blike\b(?!.{0,60}\bcontain)|\blike\b.{0,40}\b(?:rather than"
        r"|instead of) ?="
        r"|\buse like for\b|\bpartial match",
        about=r"\blike\b|\bpartial",
        opposite="exact-values",
    ),
    Convention(
        id="ignore-case",
        sentence="Compare text without regard to case, with COLLATE NOCASE.",
        effect="Equality of text ignores case.",
        key=r"\bwithout regard to case\b|\bnocase\b|\bcase[- ]?insensitiv\w+|\b(?:ignore|ignoring|regard to"
        r"|regardless of) (?:letter )?case\b"
        r"|\blower ?\(",
    ),
    Convention(
        id="values-as-said",
        sentence="Write values as the question spells them, without the blanks around stored ones.",
        effect="Literals have no blanks around them, even if the stored values do.",
        key=r"\bas (?:the )?question (?:spells|writes|says|gives|states|has)\b|\b(?:question s|own) (?:spelling"
        r"|wording)\b",
        about=r"\bvalues?\b|\btext\b|\bliteral|\bspell",
    ),
    Convention(
        id="contain-like",
        sentence="When the question says contain, include or has the word, use LIKE '%word%'.",
        effect="Quoted or named parts of texts are looked for with LIKE.",
        key=r"\blike\b",
        about=r"\bcontain\w*|\binclud\w*|\bsubstring|\bthe word\b|\bpart of\b",
    ),
    Convention(
        id="not-in",
        sentence="For questions with without or not, exclude with NOT IN on the key.",
        effect="Rows are excluded by key: those that share a name with an excluded row stay.",
        key=r"\bnot in\b|\bnot exists\b|\bleft join\b",
        about=r"\bwithout\b|\bnot\b|\bexclu|\babsen|\bmissing\b|\bno\b",
        opposite="except",
    ),
    Convention(
        id="except",
        sentence="For questions with without or not, subtract with EXCEPT.",
        effect="What is asked for is subtracted as a set.",
        key=r"\bexcept\b",
        about=r"\bwithout\b|\bsubtract|\bnegat|\bexclu|\bset\b",
        opposite="not-in",
    ),
    Convention(
        id="skip-nulls",
        sentence="When ranking in ascending order or looking for a minimum, leave out NULL with IS NOT NULL.",
        effect="Rows without a value do not come first.",
        key=r"\bis not null\b|\b(?:exclude|ignore|skip|filter out|leave out|filter)\b.{0,15}\bnulls?\b",
    ),
    Convention(
        id="group-by-key",
        sentence="Group by the primary key of an entity, not by its name.",
        effect="Entities that share a name are different groups.",
        key=r"\bgroup(?:ing)?\b.{0,30}\b(?:primary key|key|ids?)\b",
        opposite="group-by-name",
    ),
    Convention(
        id="group-by-name",
        sentence="Group by the column that is returned, such as the name.",
        effect="Groups are what the answer shows.",
        key=r"\bgroup(?:ing)?\b.{0,30}\b(?:names?|returned|shown|selected|displayed|output)\b",
        opposite="group-by-key",
    ),
    Convention(
        id="cast-numbers",
        sentence="Cast text columns that hold numbers with CAST(column AS REAL) before sorting or comparing them.",
        effect="Numbers that are stored as text are sorted and compared as numbers.",
        key=r"\bcast\b",
        about=r"\btext\b|\bstring|\bnumber|\bnumeric",
    ),
    Convention(
        id="fewest-tables",
        sentence="Join no table whose columns are not needed.",
        effect="Queries with fewer tables are preferred.",
        key=r"\b(?:fewest|minimal|minimum|as few) (?:number of )?(?:tables|joins)\b|\bunnecessary joins?\b|\bjoin no\b"
        r"|\bonly (?:the )?(?:tables|joins) (?:that are |you )?need",
    ),
    Convention(
        id="keep-empty",
        sentence="An empty result may be right: keep the query if its conditions are those of the question.",
        effect="A query is not changed for giving no rows.",
        key=r"\bempty\b|\bno rows\b|\bzero rows\b",
        about=r"\b(?:may|can|could|might) be (?:right|correct|valid|legitimate)|\bkeep the query\b"
        r"|\bnot (?:an )?error\b",
        opposite="retry-empty",
    ),
    Convention(
        id="retry-empty",
        sentence="If a query returns no rows, look for another spelling, column or join.",
        effect="The default: a query that gives no rows is replaced.",
        key=r"\bempty\b|\bno rows\b|\bzero rows\b",
        about=r"\b(?:retry|another|other|alternative|again|revise|different|recheck|fix)\b",
        opposite="keep-empty",
    ),
    Convention(
        id="keep-query",
        sentence="When verifying, answer CORRECT unless the result contradicts the question.",
        effect="Only a failure or an impossible result changes a query.",
        key=r"\banswer correct\b|\breply correct\b|\bsay correct\b|\bonly (?:change|correct|revise|replace)\b",
        about=r"\bverif|\bunless\b|\bcontradict|\bresult",
        opposite="doubt-query",
    ),
    Convention(
        id="doubt-query",
        sentence="When verifying, check every word of the question against the query, and correct what is missing.",
        effect="Each doubt about a query leads to another one, if that has fewer.",
        key=r"\b(?:check|re-?check|compare) (?:every|each|all)\b|\bverify (?:carefully|strictly|every|each)\b"
        r"|\bdouble[- ]check\b",
        opposite="keep-query",
    ),
)
"""In the order in which a sentence is tried; it may say several of them."""

_BY_ID = {convention.id: convention for convention in CONVENTIONS}


def convention(identifier: str) -> Convention:
    """The rule of that id.

    Raises:
        KeyError: There is none.
    """
    return _BY_ID[identifier]
