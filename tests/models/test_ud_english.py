"""Part-of-speech tags of web text with default features."""

from __future__ import annotations

import os

import pytest

from seqlab import StructuredPerceptron, Tagger, Templates
from seqlab.datasets import fetch_ud_english_ewt


@pytest.mark.data
@pytest.mark.skipif("SEQLAB_DATA" not in os.environ, reason="SEQLAB_DATA is not set")
def test_universal_tags_with_the_default_template():
    X, y = fetch_ud_english_ewt(subset="train", return_X_y=True)
    tagger = Tagger(Templates.default(), StructuredPerceptron(max_iter=10, random_state=0)).fit(
        X, y
    )
    X_test, y_test = fetch_ud_english_ewt(subset="test", return_X_y=True)
    assert tagger.score(X_test, y_test) >= 0.94
