"""What a database-analysis tool wrote, read back into a schema: statements, M-Schema, JSON, tables, lists and prose.

No form is required. Every reader notes what it understands; where several speak of one column, what they say is merged.
"""

from orchestrator.llm.offline.sql.analysis.known import Analysis, read_analysis

__all__ = ["Analysis", "read_analysis"]
