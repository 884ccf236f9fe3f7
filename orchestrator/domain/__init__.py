"""Frozen values shared by every layer; no clock, file, environment or random state in here."""
