"""The example scripts run without warnings and write the figures they announce."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))
WITH_FIGURE = {"inspect_weights.py", "sensor_segments.py"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_example(script, tmp_path):
    command = [sys.executable, "-W", "error", str(script)]
    if script.name in WITH_FIGURE:
        command += ["--figure", "figure.png"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "MPLBACKEND": "Agg"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert done.stderr == ""
    written = {path.name for path in tmp_path.iterdir()}
    assert written == ({"figure.png"} if script.name in WITH_FIGURE else set())


def test_every_example_is_listed():
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    for script in SCRIPTS:
        assert f"`{script.name}`" in listed
