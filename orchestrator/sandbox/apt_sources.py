"""The host's own package sources, as far as they belong to its distribution.

Both formats of sources.list(5) are read: one line per source, and deb822 paragraphs. Third-party sources are left out:
an image holds packages of the distribution only.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import PrerequisiteError

SUPPORTED = ("debian", "ubuntu")
_ONE_LINE = re.compile(r"^deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s*(?P<components>.*)$")
_ARCHIVE_KEYRING = re.compile(r"(?:debian|ubuntu)-archive-[a-z0-9-]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """What os-release(5) says of the host."""

    id: str
    codename: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One suite of one repository; its component is always `main`."""

    uri: str
    suite: str
    signed_by: str
    """A path, several separated by commas, an armoured key, or empty: the keys apt trusts in general."""

    def line(self, keyring: str) -> str:
        """In one-line format, with the keyring given; empty for apt's own."""
        return f"deb {f'[signed-by={keyring}] ' if keyring else ''}{self.uri} {self.suite} main"


def read_distribution(root: Path = Path("/")) -> Distribution:
    """The host's distribution.

    Raises:
        PrerequisiteError: It is neither Debian nor Ubuntu, or has no codename.
    """
    path = root / "etc/os-release"
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    facts = {key: "".join(shlex.split(value)[:1]) for key, value in values.items()}
    distribution, codename = facts.get("ID", ""), facts.get("VERSION_CODENAME", "")
    if distribution not in SUPPORTED or not codename:
        found = f"{distribution or 'unknown'} {codename or '(no codename)'}"
        msg = (
            f"the base image is made from Debian or Ubuntu packages, and this host is {found}; "
            "run `evolvarium images build --base IMAGE@sha256:DIGEST` with an image that has Python 3.11 or newer"
        )
        raise PrerequisiteError(msg)
    return Distribution(id=distribution, codename=codename)


def read_sources(distribution: Distribution, root: Path = Path("/")) -> list[Source]:
    """The distribution's own sources on this host, in order, each once.

    Sources signed by a key other than the distribution's count only where there is no other, as with a company's
    mirror.

    Raises:
        PrerequisiteError: There is none.
    """
    found = [
        source
        for source in dict.fromkeys(_all_sources(root / "etc/apt"))
        if source.suite.rstrip("/") in _suites(distribution)
    ]
    official = [source for source in found if not source.signed_by or _ARCHIVE_KEYRING.search(source.signed_by)]
    release = [source for source in official if source.suite.rstrip("/") in _release_suites(distribution)]
    sources = official if release else found
    if not sources:
        where = f"{distribution.id} {distribution.codename}"
        msg = (
            f"no package source for {where} (component main) under {root / 'etc/apt'}; "
            "add one to sources.list.d, or run `evolvarium images build --base IMAGE@sha256:DIGEST`"
        )
        raise PrerequisiteError(msg)
    return sources


def _release_suites(distribution: Distribution) -> frozenset[str]:
    aliases = {"stable", "testing", "unstable", "sid"} if distribution.id == "debian" else set()
    return frozenset({distribution.codename} | aliases)


def _suites(distribution: Distribution) -> frozenset[str]:
    pockets = ("", "-updates", "-security", "/updates")
    return frozenset(name + pocket for name in _release_suites(distribution) for pocket in pockets)


def _all_sources(apt: Path) -> Iterator[Source]:
    parts = sorted((apt / "sources.list.d").glob("*")) if (apt / "sources.list.d").is_dir() else []
    for path in [apt / "sources.list", *parts]:
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix == ".sources":
            for paragraph in _paragraphs(text):
                yield from _from_paragraph(paragraph)
        elif path.suffix == ".list":
            yield from _from_lines(text.splitlines())


def _from_lines(lines: Iterable[str]) -> Iterator[Source]:
    for line in lines:
        match = _ONE_LINE.match(line.split("#", 1)[0].strip())
        if match and "main" in match["components"].split():
            options = dict(option.split("=", 1) for option in (match["options"] or "").split() if "=" in option)
            yield Source(uri=match["uri"], suite=match["suite"], signed_by=options.get("signed-by", ""))


def _paragraphs(text: str) -> Iterator[dict[str, str]]:
    paragraph: dict[str, str] = {}
    key = ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if paragraph:
                yield paragraph
            paragraph, key = {}, ""
        elif line[0] in " \t":
            paragraph[key] = paragraph.get(key, "") + "\n" + ("" if line.strip() == "." else line.strip())
        elif ":" in line:
            key, value = line.split(":", 1)
            key = key.strip().lower()
            paragraph[key] = value.strip()


def _from_paragraph(fields: Mapping[str, str]) -> Iterator[Source]:
    if fields.get("enabled", "yes").lower() in {"no", "false", "0"} or "deb" not in fields.get("types", "").split():
        return
    if "main" not in fields.get("components", "").split():
        return
    signed_by = fields.get("signed-by", "").strip()
    if "BEGIN PGP" not in signed_by:
        signed_by = ",".join(signed_by.split())
    for uri in fields.get("uris", "").split():
        for suite in fields.get("suites", "").split():
            yield Source(uri=uri, suite=suite, signed_by=signed_by)
