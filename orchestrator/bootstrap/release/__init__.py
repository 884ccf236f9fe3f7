"""Packages that leave their run: exported, audited, approved, and used without any of the code that evolves."""
