"""RoboPhD's evolver without a language model: recombines packages, learns from ranks and error reports."""

from orchestrator.llm.offline.evolver.replies import is_evolver_request, respond_evolver

__all__ = ["is_evolver_request", "respond_evolver"]
