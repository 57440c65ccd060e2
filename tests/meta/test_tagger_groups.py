"""Tagger passes groups on to its labeler."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from seqlab import LinearChainCRF, StackedSequentialLearner, Tagger, Templates
from seqlab.data.errors import InputError
from seqlab.datasets import make_addresses


def test_groups_reach_the_labeler_and_raise_if_it_does_not_support_them():
    X, y = make_addresses(24, random_state=0, return_X_y=True)
    groups = [i // 4 for i in range(24)]
    stacked = StackedSequentialLearner(LinearChainCRF(c2=0.1), cv=3, random_state=0)
    tagger = Tagger(Templates.default(), stacked).fit(X, y, groups=groups)
    features = Templates.default().fit_transform(X)
    alone = clone(stacked).fit(features, y, groups=groups)
    for a, b in zip(tagger.predict_proba(X), alone.predict_proba(features), strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(InputError, match="LinearChainCRF does not support groups"):
        Tagger(Templates.default()).fit(X, y, groups=groups)
