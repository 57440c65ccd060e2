"""Templates on CoNLL-2000: compared with the counts of CRF++ and CRFsuite, and with plain Python."""

import gzip
import os
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from seqlab.features import Templates

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def chunking():
    folder = os.environ.get("SEQLAB_DATA")
    path = Path(folder or ".") / "conll2000" / "train.txt.gz"
    if not folder or not path.exists():
        pytest.skip("needs $SEQLAB_DATA/conll2000/train.txt.gz")
    X, y = [[]], [[]]
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                word, pos, label = line.split()
                X[-1].append((word, pos))
                y[-1].append(label)
            elif X[-1]:
                X.append([])
                y.append([])
    return [s for s in X if s], [s for s in y if s]


def test_crfpp_template(chunking):
    # 338,551 state attributes: 338,551 x 22 labels + 22 x 22 transitions = 7,448,606 parameters.
    model = Templates.chunking("crfpp").fit(chunking[0])
    assert model.n_features_out_ == 338_551
    assert len(set(model.get_feature_names_out())) == 338_551


def test_crfpp_template_with_min_count(chunking):
    # With -f 3 CRF++ reports 1,679,700 parameters: 76,328 x 22 + 22 x 22.
    model = Templates.chunking("crfpp", min_count=3).fit(chunking[0])
    assert model.n_features_out_ == 76_328


def test_crfsuite_attributes(chunking):
    X, y = chunking
    model = Templates.chunking()
    matrix = model.fit_transform(X).matrix.tocoo()
    labels = [label for sequence in y for label in sequence]
    pairs = {(column, labels[row]) for row, column in zip(matrix.row, matrix.col, strict=True)}
    assert len(pairs) == 452_610  # state features that CRFsuite reports on this file


def test_names_and_counts_equal_plain_python(chunking):
    X = chunking[0][:300]
    model = Templates.chunking("crfpp")
    matrix, names = model.fit_transform(X).matrix, model.get_feature_names_out()
    counts = dict(zip(names.tolist(), matrix.sum(axis=0).A1.tolist(), strict=True))
    expected = Counter()
    for sentence in X:
        padded = [("_B-2",) * 2, ("_B-1",) * 2, *sentence, ("_B+1",) * 2, ("_B+2",) * 2]
        for t in range(len(sentence)):
            window = padded[t : t + 5]
            expected.update(f"U{k:02d}:{window[k][0]}" for k in range(5))
            expected.update(f"U{k + 10}:{window[k][1]}" for k in range(5))
            expected.update(f"U{k + 4:02d}:{window[k][0]}/{window[k + 1][0]}" for k in (1, 2))
            expected.update(f"U{k + 15}:{window[k][1]}/{window[k + 1][1]}" for k in range(4))
            trigrams = (islice(window, k, k + 3) for k in range(3))
            expected.update(
                f"U{k + 20}:" + "/".join(pos for _, pos in part) for k, part in enumerate(trigrams)
            )
    assert counts == expected
