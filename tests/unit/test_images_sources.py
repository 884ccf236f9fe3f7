"""Package sources: only the distribution's own, from both formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import PrerequisiteError
from orchestrator.sandbox.apt_sources import Distribution, read_distribution, read_sources

BOOKWORM = Distribution(id="debian", codename="bookworm")
DEB822 = """\
# a comment
Types: deb deb-src
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: https://vendor.test/node
Suites: nodistro
Components: main
Signed-By: /usr/share/keyrings/vendor.gpg

Enabled: no
Types: deb
URIs: http://off.test/debian
Suites: bookworm
Components: main
"""


def _host(root: Path, **files: str) -> Path:
    folder = root / "etc/apt/sources.list.d"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return root


def test_a_deb822_file_gives_the_distributions_suites_and_no_vendors(tmp_path: Path) -> None:
    sources = read_sources(BOOKWORM, _host(tmp_path, debian_sources=DEB822))
    assert [(source.uri, source.suite) for source in sources] == [
        ("http://mirror.test/debian", "bookworm"),
        ("http://mirror.test/debian", "bookworm-updates"),
    ]
    assert sources[0].signed_by == "/usr/share/keyrings/debian-archive-keyring.gpg"


def test_one_line_sources_keep_their_keyring_and_lose_other_components(tmp_path: Path) -> None:
    text = (
        "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
        "http://a.test/debian bookworm main x\n"
        "deb http://b.test/debian-security bookworm-security main # a comment\n"
        "deb http://c.test/debian bookworm contrib\n"
        "deb-src http://a.test/debian bookworm main\n"
        "# deb http://d.test/debian bookworm main\n"
    )
    sources = read_sources(BOOKWORM, _host(tmp_path, a_list=text))
    assert [source.line(source.signed_by) for source in sources] == [
        "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://a.test/debian bookworm main",
        "deb http://b.test/debian-security bookworm-security main",
    ]


def test_a_vendor_that_names_its_suite_like_the_distribution_is_left_out(tmp_path: Path) -> None:
    vendor = "deb [signed-by=/usr/share/keyrings/vendor.gpg] https://vendor.test/debian bookworm main\n"
    official = "deb http://a.test/debian bookworm main\n"
    sources = read_sources(BOOKWORM, _host(tmp_path, a_list=official, b_list=vendor))
    assert [source.uri for source in sources] == ["http://a.test/debian"]


def test_a_companys_mirror_counts_where_there_is_nothing_else(tmp_path: Path) -> None:
    mirror = "deb [signed-by=/etc/apt/keyrings/company.gpg] https://mirror.test/debian bookworm main\n"
    sources = read_sources(BOOKWORM, _host(tmp_path, a_list=mirror))
    assert [source.signed_by for source in sources] == ["/etc/apt/keyrings/company.gpg"]


def test_a_key_inside_a_deb822_file_is_kept_whole(tmp_path: Path) -> None:
    key = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n AAAA\n -----END PGP PUBLIC KEY BLOCK-----"
    text = f"Types: deb\nURIs: http://a.test/ubuntu\nSuites: noble\nComponents: main\nSigned-By:\n {key}\n"
    sources = read_sources(Distribution(id="ubuntu", codename="noble"), _host(tmp_path, ubuntu_sources=text))
    lines = ["-----BEGIN PGP PUBLIC KEY BLOCK-----", "", "AAAA", "-----END PGP PUBLIC KEY BLOCK-----"]
    assert sources[0].signed_by.splitlines() == lines


def test_a_host_without_sources_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="--base"):
        read_sources(BOOKWORM, _host(tmp_path))


def test_another_distribution_is_told_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('ID=fedora\nVERSION_CODENAME=""\n')
    with pytest.raises(PrerequisiteError, match=r"fedora \(no codename\).*--base"):
        read_distribution(tmp_path)


def test_the_codename_is_read_without_its_quotes(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('# facts\nID=ubuntu\nVERSION_CODENAME="noble"\n')
    assert read_distribution(tmp_path) == Distribution(id="ubuntu", codename="noble")
