"""The offline engine: search operators behind the model port, without a language model."""

from orchestrator.llm.offline.model import DEFAULT_CONTEXT_TOKENS, OfflineModel

__all__ = ["DEFAULT_CONTEXT_TOKENS", "OfflineModel"]
