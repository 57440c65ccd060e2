"""Every format reads what it has written, for generated data."""

import io

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from seqlab.data import io as formats

# Any text without characters that end lines or separate columns, and without surrogates.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r \ufeff")
WORD = st.text(CHARACTERS, min_size=1, max_size=6)
PHRASE = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\ufeff"),
    min_size=1,
    max_size=6,
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def labelled(draw, step, label, min_steps=1):
    """A list of sequences of steps, and labels of the same lengths."""
    lengths = draw(st.lists(st.integers(min_steps, 4), min_size=1, max_size=4))
    X = [draw(st.lists(step, min_size=n, max_size=n)) for n in lengths]
    y = [draw(st.lists(label, min_size=n, max_size=n)) for n in lengths]
    return X, y


@st.composite
def columns(draw, column, label):
    """Column tokens of one width for all sequences."""
    width = draw(st.integers(1, 3))
    return draw(labelled(st.tuples(*[column] * width), label))


def write(writer, X, y, **options):
    """The written bytes as a stream."""
    out = io.BytesIO()
    writer(X, y, out, **options)
    return io.BytesIO(out.getvalue())


@given(columns(WORD, WORD), st.sampled_from([-1, 0]))
def test_conll_with_spaces(data, label):
    X, y = data
    options = {"label": label, "sep": " "}
    written = write(formats.write_conll, X, y, **options)
    assert formats.read_conll(written, docstart=None, **options) == (X, y)


@given(columns(PHRASE, WORD), st.sampled_from([-1, 0]))
def test_conll_with_tabs(data, label):
    X, y = data
    options = {"label": label, "sep": "\t"}
    written = write(formats.write_conll, X, y, **options)
    assert formats.read_conll(written, docstart=None, **options) == (X, y)


@given(columns(WORD, WORD))
def test_conll_without_labels_by_iteration(data):
    X, _ = data
    written = write(formats.write_conll, X, None)
    got = list(formats.iter_conll(written, label=None, sep=" ", docstart=None))
    assert got == [(tokens, None) for tokens in X]


@given(columns(WORD, WORD))
def test_conll_separator_is_detected(data):
    X, y = data
    for sep in " \t":
        written = write(formats.write_conll, X, y, sep=sep)
        assert formats.read_conll(written, docstart=None) == (X, y)


@given(labelled(st.tuples(PHRASE, PHRASE), PHRASE.filter(lambda label: label != "_")))
def test_conllu(data):
    X, y = data
    fields = {"columns": ["form", "lemma"], "label": "xpos"}
    assert formats.read_conllu(write(formats.write_conllu, X, y, **fields), **fields) == (X, y)


@given(labelled(st.dictionaries(PHRASE, FINITE, max_size=4), WORD))
def test_crfsuite(data):
    X, y = data
    assert formats.read_crfsuite(write(formats.write_crfsuite, X, y)) == (X, y)


@given(labelled(st.lists(WORD, min_size=1, max_size=4, unique=True), WORD))
def test_crfsuite_bags(data):
    X, y = data
    got, labels = formats.read_crfsuite(write(formats.write_crfsuite, X, y))
    assert [[list(step) for step in sequence] for sequence in got] == X
    assert labels == y
    bare = formats.read_crfsuite(write(formats.write_crfsuite, X, None), labeled=False)
    assert bare == (got, None)


@given(labelled(st.lists(FINITE, min_size=3, max_size=3), st.integers(-(2**40), 2**40)))
def test_svmlight_integers(data):
    X, y = data
    matrices = [sp.csr_matrix(np.array(x)) for x in X]
    got, labels = formats.read_svmlight(write(formats.write_svmlight, matrices, y), n_features=3)
    assert [x.toarray().tolist() for x in got] == [m.toarray().tolist() for m in matrices]
    assert [row.tolist() for row in labels] == y


@given(labelled(st.lists(FINITE, min_size=2, max_size=2), FINITE))
def test_svmlight_floats_counted_from_zero(data):
    X, y = data
    written = write(formats.write_svmlight, X, y, zero_based=True)
    got, labels = formats.read_svmlight(written, n_features=2, zero_based=True)
    assert [x.toarray().tolist() for x in got] == X
    assert [row.tolist() for row in labels] == y


LABEL = st.one_of(
    st.none(), PHRASE, st.integers(), st.booleans(), st.sets(PHRASE, min_size=1, max_size=3)
)


@given(labelled(st.tuples(st.text(CHARACTERS)), LABEL, min_steps=0))
def test_jsonl_words(data):
    X, y = data
    assert formats.read_jsonl(write(formats.write_jsonl, X, y)) == (X, y)


@given(columns(PHRASE, LABEL))
def test_jsonl_columns(data):
    X, y = data
    assert formats.read_jsonl(write(formats.write_jsonl, X, y)) == (X, y)


@given(
    labelled(
        st.dictionaries(PHRASE, st.one_of(PHRASE, FINITE, st.booleans(), st.integers())), LABEL
    )
)
def test_jsonl_dicts(data):
    X, y = data
    assert formats.read_jsonl(write(formats.write_jsonl, X, y)) == (X, y)


@given(labelled(st.lists(PHRASE, max_size=3), LABEL), labelled(st.tuples(FINITE, FINITE), LABEL))
def test_jsonl_bags_and_arrays(bags, rows):
    assert formats.read_jsonl(write(formats.write_jsonl, *bags)) == bags
    X, y = [np.array(x) for x in rows[0]], rows[1]
    got, labels = formats.read_jsonl(write(formats.write_jsonl, X, y))
    assert [x.tolist() for x in got] == [x.tolist() for x in X]
    assert labels == y


@given(columns(PHRASE, PHRASE))
def test_frame_text(data):
    X, y = data
    frame = formats.write_frame(X, y)
    assert formats.read_frame(frame, group="sequence", label="label") == (X, y)


@given(labelled(st.tuples(FINITE, FINITE), st.integers(0, 5)))
def test_frame_numbers(data):
    X, y = data
    frame = formats.write_frame([np.array(x) for x in X], y, columns=["a", "b"])
    got, labels = formats.read_frame(frame, group="sequence", label="label")
    assert [x.tolist() for x in got] == [[list(row) for row in x] for x in X]
    assert labels == y


@given(labelled(st.fixed_dictionaries({"w": PHRASE, "n": FINITE}), PHRASE))
def test_frame_dicts(data):
    X, y = data
    frame = formats.write_frame(X, y)
    assert formats.read_frame(frame, group="sequence", label="label") == (X, y)
