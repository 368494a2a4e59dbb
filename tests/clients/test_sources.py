"""The sources of the clients, without building them: pages show what is tested, and nothing names a host."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.clients.languages import LANGUAGES, ROOT, Language

CLIENTS = ROOT / "tests" / "clients"


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.name)
def test_the_section_of_a_language_shows_its_agent(language: Language) -> None:
    """What the page shows is the whole program of tests/clients, letter by letter."""
    program = (CLIENTS / language.folder / language.agent).read_text(encoding="utf-8")
    assert language.section()[1] == program


def test_no_file_of_a_client_records_where_to_download_from() -> None:
    """No lock file with addresses is committed, and manifests name packages and exact versions alone."""
    listed = subprocess.run(["git", "ls-files", "tests/clients"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.split() if (ROOT / name).exists()]
    assert names
    for name in names:
        assert not name.endswith(("package-lock.json", "Cargo.lock")), name
        text = (ROOT / name).read_text(encoding="utf-8")
        for host in re.findall(r"https?://([\w.-]+)", text):
            assert host in {"127.0.0.1", "maven.apache.org", "www.w3.org"}, f"{name}: {host}"
