"""LineFeatures: each basic feature, the frozen set, positions and neighbours, bad input."""

from __future__ import annotations

import hashlib
import re
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqlab import LinearChainCRF, Tagger, load, save
from seqlab.data import InputError
from seqlab.datasets import DatasetError, fetch_email_signatures
from seqlab.features import LineFeatures
from seqlab.features._line_patterns import BASIC_NAMES

# Lines, features they must have, and features they must not have.
LINES = [
    ("", {"blank"}, {"short", "no letter or digit"}),
    ("   \t", {"blank"}, {"indented"}),
    ("--", {"double dash alone", "no letter or digit"}, {"rule", "blank"}),
    ("-- ", {"double dash alone"}, set()),
    ("===========", {"rule", "no letter or digit", "a fifth are marks"}, {"digit"}),
    ("> I think so too", {"quote mark"}, {"begins in upper case"}),
    ("JS> I think so too", {"initials and quote mark"}, {"quote mark"}),
    ("--> and this too", {"quote mark"}, set()),
    ("| Ada | London |", {"framed", "vertical bar"}, {"quote mark"}),
    ("ada@example.org (Ada) writes:", {"announces a quote", "e-mail address"}, {"header field"}),
    ("In article <1993@x.org> you say", {"announces a quote", "message number"}, set()),
    ("Subject: hello", {"mail header", "header field"}, {"list item"}),
    ("Disclaimer: none", {"header field", "opinion or disclaimer"}, {"mail header"}),
    ("ada@example.org", {"address alone", "e-mail address", "short"}, {"digit"}),
    ("see http://example.org/x", {"web address"}, {"e-mail address"}),
    ("uunet!mcvax!ada", {"host name"}, set()),
    ("Phone: (416) 978-4928", {"phone number", "word of contact", "digit"}, set()),
    ("Toronto M5S 1A4", {"postcode"}, set()),
    ("Seattle, WA 98195", {"postcode"}, set()),
    ("Dept. of Physics, University of Leeds", {"word of an organisation"}, {"all upper case"}),
    ("Ada K. Lovelace", {"name alone"}, {"ends a sentence"}),
    ("Thanks in advance,", {"closing words"}, set()),
    ("  1. first things first", {"list item", "indented"}, set()),
    ("* a bullet", {"list item"}, set()),
    ("Q: What is a line?", {"question or answer", "ends with question mark"}, set()),
    ("12:30:01 ERROR disk full", {"time of day", "log level"}, {"list item"}),
    ("2026-01-31 started", {"date"}, {"phone number"}),
    ("Pete     7   2   0  .778", {"row of numbers", "columns"}, set()),
    ("I wonder if you saw this", {"first or second person"}, set()),
    ("it is the end of a long day", {"words of prose", "begins in lower case"}, {"short"}),
    ("STOP NOW", {"all upper case", "one or two words"}, {"words of prose"}),
]


def feature_names(line, **options):
    transformer = LineFeatures(features="basic", **options)
    matrix = transformer.fit_transform([[line]]).matrix
    return set(transformer.get_feature_names_out()[matrix.indices])


@pytest.mark.parametrize(("line", "has", "lacks"), LINES, ids=[line for line, *_ in LINES])
def test_features_of_a_line(line, has, lacks):
    found = feature_names(line)
    assert has <= found, found
    assert not lacks & found, found


def test_every_feature_occurs_in_some_line():
    seen = set().union(*(feature_names(line) for line, *_ in LINES), feature_names("x" * 70))
    seen |= feature_names("Room 12, office: 3, and then there are eight words or more # 4")
    seen |= feature_names("- a dash")
    assert set(BASIC_NAMES) <= seen, set(BASIC_NAMES) - seen


def test_the_basic_set_is_frozen():
    """Results and model files depend on the names and their order; a better set needs a new name."""
    assert len(BASIC_NAMES) == 47
    assert hashlib.sha256("\n".join(BASIC_NAMES).encode()).hexdigest()[:16] == "a6d6e69bbed8f6eb"
    assert LineFeatures(features="basic").fit().get_feature_names_out().tolist() == BASIC_NAMES


# The simplest form of those patterns that are written in another form for speed.
SIMPLE = {
    "framed": re.compile(r"^\s*([^\w\s]).*\w.*\1$"),
    "e-mail address": re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)*"),
    "message number": re.compile(r"<\S*\d\S*@\S+>"),
    "host name": re.compile(r"\b[a-z][\w-]*(?:\.[\w-]+)+\.[a-z]{2,4}\b|\w!\w", re.IGNORECASE),
}


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(
        st.text("a.-1 @", min_size=1, max_size=12),
        st.text("<>1@a ", min_size=1, max_size=12),
        st.text("*|a1 \n", min_size=1, max_size=12),
        st.lists(
            st.sampled_from(["a", "1", "-", ".", "com", "é", "!", "_", "\u017f", " "]), max_size=10
        ).map("".join),
    )
)
def test_fast_patterns_agree_with_the_simple_ones(line):
    found = feature_names(line)
    read = line.expandtabs().rstrip()
    for name, simple in SIMPLE.items():
        assert (name in found) == bool(simple.search(read)), name


@pytest.mark.parametrize(
    "part",
    ["x", "<1", "<1@", "a.", "a-", "1.a.", "*a", "1 -", "said: ", "A. ", "(", " ", "x!", "jan"],
)
def test_very_long_lines_are_fast(part):
    """Patterns take linear time; quadratic time would mean minutes here."""
    line = part * (150_000 // len(part)) + "~"
    begin = time.process_time()
    feature_names(line)
    assert time.process_time() - begin < 5


def test_basic_features_depend_on_the_line_alone():
    lines = [line for line, *_ in LINES]
    transformer = LineFeatures(features="basic").fit()
    together = transformer.transform([lines]).matrix.toarray()
    order = np.random.default_rng(0).permutation(len(lines))
    shuffled = transformer.transform([[lines[i] for i in order]]).matrix.toarray()
    assert np.array_equal(together[order], shuffled)
    assert set(np.unique(together)) == {0.0, 1.0}
    assert transformer.transform([lines]).is_sparse


def test_full_adds_neighbours_and_position():
    lines = [line for line, *_ in LINES]
    documents = [lines, lines[:1], [], lines[:5]]
    basic = LineFeatures(features="basic").fit_transform(documents)
    transformer = LineFeatures()
    full = transformer.fit_transform(documents)
    names = transformer.get_feature_names_out().tolist()
    assert full.n_features == len(names) == len(set(names))
    assert full.lengths.tolist() == [len(lines), 1, 0, 5]
    dense, alone = full.matrix.toarray(), basic.matrix.toarray()
    assert np.array_equal(dense[:, : len(BASIC_NAMES)], alone)
    before = names.index("double dash alone[-1]")
    own = names.index("double dash alone")
    assert np.array_equal(dense[1 : len(lines), before], dense[: len(lines) - 1, own])
    assert dense[len(lines) + 1, before] == 0  # a document does not read the previous one
    first, last = names.index("line 0 from the start"), names.index("line 0 from the end")
    assert np.flatnonzero(dense[:, first]).tolist() == [0, len(lines), len(lines) + 1]
    assert np.flatnonzero(dense[:, last]).tolist() == [len(lines) - 1, len(lines), len(lines) + 5]
    place = [k for k, name in enumerate(names) if name.startswith(("line ", "tenth "))]
    assert (dense[:, place].sum(axis=1) == 3).all()
    assert dense[0, names.index("tenth 1")] == dense[len(lines) - 1, names.index("tenth 10")] == 1


def test_buckets_of_distances():
    names = LineFeatures().fit().get_feature_names_out().tolist()
    matrix = LineFeatures().fit_transform([[""] * 150]).matrix.toarray()

    def at(name):
        return np.flatnonzero(matrix[:, names.index(name)])

    assert at("line 6-7 from the start").tolist() == [6, 7]
    assert at("line 100+ from the start").tolist() == list(range(100, 150))
    assert at("line 8-9 from the end").tolist() == [140, 141]
    assert at("tenth 2").tolist() == list(range(15, 30))


def test_additional_patterns_and_other_columns():
    found = feature_names("took 12 ms", patterns={"milliseconds": r"\d+ ms\b"})
    assert "milliseconds" in found
    rows = LineFeatures(features="basic", column=1).fit_transform([[("1", "--"), ("2", "")]])
    assert np.array_equal(
        rows.matrix.toarray(),
        LineFeatures(features="basic").fit_transform([["--", ""]]).matrix.toarray(),
    )
    names = LineFeatures(patterns={"ms": "ms"}).fit().get_feature_names_out().tolist()
    assert "ms[+2]" in names


def test_bad_input():
    with pytest.raises(InputError, match="pattern 'x' is not a regular expression"):
        LineFeatures(patterns={"x": "("}).fit()
    with pytest.raises(InputError, match="'blank' is the name of a basic feature"):
        LineFeatures(patterns={"blank": "x"}).fit()
    with pytest.raises(InputError, match=r"X\[1\]"):
        LineFeatures().fit_transform([["a"], "a mail as one string"])
    with pytest.raises(InputError, match=r"X\[0\]\[1\]"):
        LineFeatures().fit_transform([["a", 5]])
    with pytest.raises(InputError, match="column 2"):
        LineFeatures(column=2).fit_transform([[("a", "b")]])
    with pytest.raises(ValueError, match="'features' parameter"):
        LineFeatures(features="all").fit()


def test_in_a_tagger_and_a_model_file(tmp_path):
    X = [["Hi,", "see you", "--", "Ada"], ["Hello", "", "bye", "--", "Bob"]] * 3
    y = [["text", "text", "sig", "sig"], ["text", "text", "text", "sig", "sig"]] * 3
    tagger = Tagger(LineFeatures(), LinearChainCRF(c2=0.1)).fit(X, y)
    assert tagger.predict([["so long", "--", "Eve"]])[0].tolist() == ["text", "sig", "sig"]
    save(tagger, tmp_path / "mail.seqlab")
    loaded = load(tmp_path / "mail.seqlab")
    assert loaded.predict(X)[0].tolist() == tagger.predict(X)[0].tolist()


@pytest.mark.data
def test_every_basic_feature_occurs_in_mail():
    try:
        messages, _ = fetch_email_signatures(return_X_y=True, download_if_missing=False)
    except DatasetError as error:
        pytest.skip(str(error))
    matrix = LineFeatures(features="basic").fit_transform(messages[:150]).matrix
    counts = np.asarray(matrix.sum(axis=0)).ravel()
    assert (counts > 0).mean() > 0.9
    assert matrix.shape[0] == sum(map(len, messages[:150]))
