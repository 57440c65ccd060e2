"""HMM: structural zeros from training data, tag schemes and masks."""

from __future__ import annotations

import numpy as np
import pytest

from seqlab import HMM
from seqlab.data import InputError
from seqlab.data.errors import NoLegalLabelingError
from seqlab.inference import Mask

X = [["walk", "shop", "clean"], ["clean", "clean", "shop"], ["walk", "walk"], ["shop"]]
y = [["sun", "rain", "rain"], ["rain", "rain", "rain"], ["sun", "sun"], ["rain"]]


def test_unseen_transitions_have_probability_zero():
    hmm = HMM(smoothing=1.0, constraints="seen").fit(X, y)
    assert hmm.transitions_[0].tolist() == [1.0, 0.0]  # rain -> sun was not seen
    assert hmm.transitions_[1].tolist() == [0.5, 0.5]
    assert hmm.sequence_log_proba([["walk", "walk"]], [["rain", "sun"]])[0] == -np.inf
    assert hmm.predict_proba([["shop", "walk", "walk"]])[0].shape == (3, 2)
    free = HMM(smoothing=1.0).fit(X, y)
    assert free.transitions_[0, 1] > 0


def test_a_label_that_occurs_only_at_the_end():
    words, labels = [["a", "b"], ["a", "b"]], [["s", "t"], ["s", "t"]]
    # Training does not show what follows it, so every label may.
    hmm = HMM(constraints="seen", smoothing=1.0).fit(words, labels)
    assert hmm.transitions_.tolist() == [[0.0, 1.0], [0.5, 0.5]]
    # A mask can forbid every successor.
    dead = Mask(transitions=[[False, True], [False, False]])
    hmm = HMM(constraints=dead, smoothing=1.0).fit(words, labels)
    assert hmm.transitions_.tolist() == [[0.0, 1.0], [0.0, 0.0]]
    assert hmm.predict([["a", "a"]])[0].tolist() == ["s", "t"]
    with pytest.raises(NoLegalLabelingError, match=r"sequence 1 .* position 2"):
        hmm.predict([["a", "a"], ["a", "a", "a"]])
    with_end = HMM(constraints=dead, smoothing=1.0, model_end=True).fit(words, labels)
    assert with_end.transitions_.tolist() == [[0.0, 0.75], [0.0, 0.0]]
    assert with_end.end_.tolist() == [0.25, 1.0]
    seen = HMM(constraints="seen", smoothing=1.0, model_end=True).fit(words, labels)
    assert seen.end_.tolist() == [0.0, 0.6]
    # Without smoothing and constraints, an unknown row is uniform.
    loose = HMM(smoothing=0.0).fit([["a", "b"]], [["s", "t"]])
    assert loose.transitions_.tolist() == [[0.0, 1.0], [0.5, 0.5]]


def test_a_tag_scheme_or_a_mask_sets_structural_zeros():
    words = [["the", "dog", "ran"], ["ran", "the", "big", "dog"]]
    tags = [["B-NP", "I-NP", "O"], ["O", "B-NP", "I-NP", "I-NP"]]
    hmm = HMM(constraints="IOB2").fit(words, tags)
    assert hmm.classes_.tolist() == ["B-NP", "I-NP", "O"]
    assert hmm.start_[1] == 0.0
    assert hmm.transitions_[2, 1] == 0.0
    assert (np.delete(hmm.start_, 1) > 0).all()
    np.testing.assert_allclose(hmm.transitions_.sum(axis=1), 1.0)
    # Renormalised over the legal targets: c(O, .) = (1, -, 0), two legal ones.
    np.testing.assert_allclose(hmm.transitions_[2], [1.1 / 1.2, 0.0, 0.1 / 1.2])
    mask = Mask(transitions=hmm.transitions_ > 0, start=hmm.start_ > 0)
    same = HMM(constraints=mask).fit(words, tags)
    np.testing.assert_array_equal(same.transitions_, hmm.transitions_)
    for wrong in (
        Mask(transitions=np.ones((2, 2), dtype=bool)),
        Mask(steps=np.ones((7, 3), dtype=bool)),
        "IOB3",
    ):
        with pytest.raises(InputError):
            HMM(constraints=wrong).fit(words, tags)
    with pytest.raises(InputError, match=r"y\[1\]\[0\] is 'O', which cannot come first"):
        HMM(constraints=Mask(start=[True, True, False])).fit(words, tags)
    with pytest.raises(InputError, match=r"y\[0\]\[1\] is 'I-NP', which cannot follow 'B-NP'"):
        HMM(constraints=Mask(transitions=~np.eye(3, k=1, dtype=bool))).fit(words, tags)
    with pytest.raises(InputError, match=r"y\[1\]\[3\] is 'I-NP', which cannot come last"):
        HMM(constraints=Mask(end=[True, False, True])).fit(words, tags)


def test_legal_last_labels_hold_without_modelling_the_end():
    words, tags = [["a", "b"], ["b", "a", "b"]], [["s", "t"], ["t", "s", "t"]]
    hmm = HMM(constraints=Mask(end=[False, True])).fit(words, tags)
    assert hmm.end_ is None
    for labels in hmm.predict([["a"], ["b", "a"], ["a", "a", "a"]]):
        assert labels[-1] == "t"
    assert hmm.sample(20, 3, 0)[1][7][-1] == "t"


def test_additional_constraints_in_prediction():
    hmm = HMM().fit(X, y)
    assert hmm.predict([["walk", "walk"]], constraints=[["rain", None]])[0][0] == "rain"
