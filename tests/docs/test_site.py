"""The site builds without warnings and without network access; the reference contains every public name."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import seqlab

ROOT = Path(__file__).parents[2]
PACKAGES = ("data", "data.io", "datasets", "features", "inference", "inspection", "metrics")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material", reason="the documentation's packages are not installed")
    folder = tmp_path_factory.mktemp("site")
    nowhere = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, **nowhere, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_pages_load_nothing_from_other_servers(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(https?:[^"]+)"', text)
        assert not loaded, f"{page.name} loads {loaded}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?https?:", style.read_text(encoding="utf-8")), style.name
    for picture in site.rglob("*.svg"):
        text = picture.read_text(encoding="utf-8")
        assert not re.search(r"(?:href=\"|url\(['\"]?)https?:", text), picture.name


def test_every_public_name_is_in_the_reference():
    reference = "\n".join(
        page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.md")
    )
    entries = {line.rsplit(".", 1)[-1] for line in re.findall(r"^::: (\S+)$", reference, re.M)}
    public = {name for name in seqlab.__all__ if not name.startswith("_")}
    for package in PACKAGES:
        public |= set(importlib.import_module(f"seqlab.{package}").__all__)
    assert public <= entries, f"not in docs/api: {sorted(public - entries)}"


def test_every_entry_is_rendered(site):
    for page in (ROOT / "docs" / "api").glob("*.md"):
        html = (site / "api" / f"{page.stem}.html").read_text(encoding="utf-8")
        for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.M):
            assert f'id="{name}"' in html, name


def test_no_machine_paths_or_package_indexes():
    wrong = re.compile(r"/(?:home|root|work|tmp)/\w|pypi\.org|localhost", re.IGNORECASE)
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    for page in [*pages, *(ROOT / "examples").glob("*")]:
        if page.is_file():
            assert not wrong.search(page.read_text(encoding="utf-8")), page
