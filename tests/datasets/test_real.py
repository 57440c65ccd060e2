"""The real data sets agree with the counts in their descriptions (skipped if they are missing)."""

import lzma
import os
import tarfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from seqlab import datasets
from seqlab.data import InputError
from seqlab.datasets._treebank import column_text
from seqlab.datasets.email_signatures import label_lines

HOME = os.environ.get("SEQLAB_DATA")
needs_data = [
    pytest.mark.data,
    pytest.mark.skipif(
        not (HOME and Path(HOME).is_dir()), reason="SEQLAB_DATA is not a folder with data sets"
    ),
]
pytestmark = needs_data


def fetch(name, **options):
    return getattr(datasets, f"fetch_{name}")(download_if_missing=False, **options)


def n_steps(X):
    return sum(x.shape[0] if hasattr(x, "shape") else len(x) for x in X)


@pytest.mark.parametrize(
    ("subset", "sentences", "tokens", "chunks", "nps", "tags"),
    [("train", 8936, 211727, 106978, 55081, 22), ("test", 2012, 47377, 23852, 12422, 19)],
)
def test_conll2000(subset, sentences, tokens, chunks, nps, tags):
    data = fetch("conll2000", subset=subset)
    assert (len(data.data), n_steps(data.data)) == (sentences, tokens)
    labels = Counter(label for labels in data.target for label in labels)
    assert len(labels) == len(data.target_names) == tags
    assert sum(n for label, n in labels.items() if label.startswith("B-")) == chunks
    assert labels["B-NP"] == nps
    assert data.feature_names == ["word", "pos"]
    assert all(len(token) == 2 for token in data.data[0])


def test_conll2000_all_and_return_X_y():
    data = fetch("conll2000", subset="all")
    assert len(data.target_names) == 23
    assert Counter(data.split) == {"train": 8936, "test": 2012}
    X, y = fetch("conll2000", subset="test", return_X_y=True)
    assert data.data[8936:] == X
    assert y == data.target[8936:]


@pytest.mark.parametrize(
    ("subset", "sentences", "words", "xpos"),
    [("train", 12544, 204577, 49), ("dev", 2001, 25147, 49), ("test", 2077, 25094, 48)],
)
def test_ud_english_ewt(subset, sentences, words, xpos):
    universal = fetch("ud_english_ewt", subset=subset)
    assert (len(universal.data), n_steps(universal.data)) == (sentences, words)
    assert len(universal.target_names) == 17
    penn = fetch("ud_english_ewt", subset=subset, tagset="xpos")
    assert len(penn.target_names) == xpos
    assert penn.data == universal.data


def test_ocr_letters():
    data = fetch("ocr_letters")
    assert (len(data.data), n_steps(data.data)) == (6877, 52152)
    counts = np.bincount(data.folds)
    assert counts.tolist() == [626, 704, 684, 698, 693, 651, 739, 717, 690, 675]
    lengths = [len(x) for x in data.data]
    assert (min(lengths), max(lengths)) == (3, 14)
    assert {x.shape[1] for x in data.data} == {128}
    assert set(np.unique(np.vstack(data.data))) == {0.0, 1.0}
    assert set(np.concatenate(data.target)) == set(data.target_names)
    assert len({"".join(word) for word in data.target}) == 55
    X, _ = fetch("ocr_letters", fold=8, return_X_y=True)
    assert (len(X), n_steps(X)) == (690, 5331)


def test_nettalk():
    data = fetch("nettalk")
    assert (len(data.data), n_steps(data.data)) == (20007, 146934)
    assert len(data.target_names) == 163
    assert Counter(data.flags) == {0: 19778, 1: 71, 2: 158}
    assert len(set(data.words)) == 19801
    assert "gunpowder" not in data.words
    assert len(fetch("nettalk", task="phoneme").target_names) == 51
    assert fetch("nettalk", task="stress").target_names == ["0", "1", "2", "<", ">"]
    first = fetch("nettalk", first_entry_only=True)
    assert len(first.words) == len(set(first.words)) == 19801
    common = fetch("nettalk", subset="common", first_entry_only=True)
    assert 990 <= len(common.words) <= 1000


def test_kasteren():
    data = fetch("kasteren")
    assert (len(data.data), n_steps(data.data)) == (28, 40006)
    assert data.days[0] == "2008-02-25"
    assert data.days[-1] == "2008-03-23"
    assert {x.shape[0] for x in data.data[1:-1]} == {1440}
    counts = Counter(np.concatenate(data.target).tolist())
    assert [counts[name] for name in data.target_names] == [
        4627, 22617, 379, 265, 11602, 109, 348, 59,
    ]  # fmt: skip
    assert data.data[0].shape[1] == len(data.feature_names) == 28


def test_kasteren_equals_the_authors_conversion():
    place = Path(HOME) / "kasteren_activities" / "house_a_2008" / "features_60s.npz"
    if not place.is_file():
        pytest.skip("no converted features to compare with")
    reference = np.load(place, allow_pickle=False)
    for coding in ("raw", "change", "last"):
        X, y = fetch("kasteren", features=coding, return_X_y=True)
        np.testing.assert_array_equal(np.vstack(X), reference[coding])
    names = fetch("kasteren").target_names
    codes = [names.index(label) for label in np.concatenate(y)]
    np.testing.assert_array_equal(codes, reference["labels"])


def test_email_signatures():
    data = fetch("email_signatures")
    assert (len(data.data), n_steps(data.data)) == (617, 33013)
    counts = Counter(label for labels in data.target for label in labels)
    assert counts == {"sig": 3321, "reply": 5587, "other": 24105}
    lengths = [len(x) for x in data.data]
    assert (min(lengths), max(lengths)) == (17, 1538)
    n_runs = sum(1 + sum(a != b for a, b in pairwise(y)) for y in data.target)
    assert n_runs == 3400
    assert len(set(data.message_ids)) == 617


def test_email_lines_come_from_the_original_files():
    folder = Path(HOME) / "email_signatures"
    if not (folder / "sigPlusReply.tar.xz").is_file():
        pytest.skip("no original files to compare with")
    with tarfile.open(folder / "sigPlusReply.tar.xz") as archive:
        messages = {
            member.name.rpartition("/")[2]: archive.extractfile(member).read()
            for member in archive
            if member.isfile()
        }
    assert label_lines(messages) == lzma.decompress((folder / "lines.tsv.xz").read_bytes())


@pytest.mark.parametrize(
    ("section", "sentences", "tokens", "nps", "svs"),
    [("00", 1921, 46451, 11728, 3213), ("01", 1993, 47633, 11812, 3226)],
)
def test_ptb_sample(section, sentences, tokens, nps, svs):
    for task, phrases in (("np", nps), ("sv", svs)):
        data = fetch("ptb_sample", section=section, task=task)
        assert (len(data.data), n_steps(data.data)) == (sentences, tokens)
        assert sum(labels.count(f"B-{task.upper()}") for labels in data.target) == phrases
        assert set(data.split) == {section}
        assert {len(token) for sentence in data.data for token in sentence} == {2}


def test_ptb_columns_come_from_the_trees():
    import gzip

    folder = Path(HOME) / "ptb_sample"
    if not (folder / "wsj_sample_trees.tsv.gz").is_file():
        pytest.skip("no trees to compare with")
    documents: dict[str, str] = {}
    for line in gzip.decompress((folder / "wsj_sample_trees.tsv.gz").read_bytes()).splitlines():
        name, _, tree = line.decode().split("\t")
        documents[name] = documents.get(name, "") + f"\n( {tree} )"
    expected = gzip.decompress((folder / "wsj_sample_np_sv.txt.gz").read_bytes())
    assert column_text(documents) == expected


def test_webkb():
    data = fetch("webkb")
    assert data.schools == ["cornell", "texas", "washington", "wisconsin"]
    assert [x.shape for x in data.data] == [(195, 1703), (187, 1703), (230, 1703), (265, 1703)]
    assert [len(e) for e in data.edges] == [304, 328, 446, 530]
    assert [int((e[:, 0] == e[:, 1]).sum()) for e in data.edges] == [3, 18, 51, 20]
    counts = [Counter(y.tolist()) for y in data.target]
    assert [[c[name] for name in data.target_names] for c in counts] == [
        [42, 32, 19, 19, 83],
        [34, 31, 18, 1, 103],
        [66, 27, 21, 9, 107],
        [76, 35, 22, 10, 122],
    ]
    X, y = fetch("webkb", school="texas", return_X_y=True)
    assert (len(X), len(y), X[0].shape[0]) == (1, 1, 187)


def test_all_are_listed_as_present():
    assert all(info.present for info in datasets.list_datasets())


def test_conll2000_with_joint_labels():
    data = fetch("conll2000", subset="all", task="pos-np")
    assert len(data.target_names) == 121  # as in Hao & Fern (2007)
    assert len({token for tokens in data.data for token in tokens}) == 21_589
    assert data.data[0][:2] == [("Confidence",), ("in",)]
    assert data.target[0][:3] == ["NN/B", "IN/O", "DT/B"]


def test_nettalk_words_for_training_and_testing():
    data = fetch("nettalk", n_train=1000, n_test=1000, random_state=0)
    assert (data.split == ["train"] * 1000 + ["test"] * 1000).all()
    again = fetch("nettalk", n_train=1000, n_test=1000, random_state=0)
    other = fetch("nettalk", n_train=1000, n_test=1000, random_state=1)
    assert data.words == again.words != other.words
    rest = fetch("nettalk", n_test=1000, random_state=0)
    assert (rest.split == "train").sum() == 19_007
    assert sorted(rest.words) == sorted(fetch("nettalk").words)
    with pytest.raises(InputError, match="too many"):
        fetch("nettalk", n_train=20_000, n_test=1000)
