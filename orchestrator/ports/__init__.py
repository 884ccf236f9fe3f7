"""Protocols between the layers; a docstring here is the contract that every adapter is tested against."""

from orchestrator.ports.evaluation import AnalysisResult, Analyst, Database, DatabaseTools, Evaluator
from orchestrator.ports.models import Ensemble, LanguageModel, ManySamples
from orchestrator.ports.records import Journal, Ledger, Reservation
from orchestrator.ports.sandbox import AuditLog, Sandbox, Session, SessionRequest

__all__ = [
    "AnalysisResult",
    "Analyst",
    "AuditLog",
    "Database",
    "DatabaseTools",
    "Ensemble",
    "Evaluator",
    "Journal",
    "LanguageModel",
    "Ledger",
    "ManySamples",
    "Reservation",
    "Sandbox",
    "Session",
    "SessionRequest",
]
