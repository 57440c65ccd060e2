"""Data that the tests of phrase models share."""

from __future__ import annotations

import pytest

from phrase_data import make_data


@pytest.fixture(scope="module")
def typed():
    return make_data(("LOC", "PER"))


@pytest.fixture(scope="module")
def single():
    return make_data()
