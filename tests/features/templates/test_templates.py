"""The features of Templates: compared with CRF++ templates expanded in plain Python, and written by hand."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqlab.features import Templates
from seqlab.features.templates._presets import crfpp_chunking_templates

PLACEHOLDER = re.compile(r"%x\[(-?\d+),(\d+)\]")
SENTENCES = [
    [("He", "PRP"), ("reckons", "VBZ"), ("the", "DT"), ("deficit", "NN")],
    [("Go", "VB")],
    [],
    [("the", "DT"), ("the", "DT")],
]


def expand(template, sentence, t):
    """Expand a CRF++ template at step t, exactly as the documentation of CRF++ says."""

    def value(match):
        position, column = t + int(match[1]), int(match[2])
        if position < 0:
            return f"_B{position}"
        if position >= len(sentence):
            return f"_B+{position - len(sentence) + 1}"
        return sentence[position][column]

    return PLACEHOLDER.sub(value, template)


def expand_all(templates, sentences, kind):
    """Names of the features of every step, in the order of CRF++."""
    own = [template for template in templates if template[0] == kind]
    rows = []
    for sentence in sentences:
        for t in range(len(sentence)):
            skipped = kind == "B" and t == 0
            rows.append([] if skipped else [expand(template, sentence, t) for template in own])
    return rows


def named_rows(sequences, names):
    """The matrix as a list of {name: value}."""
    matrix = sequences.matrix
    return [
        dict(
            zip(
                names[matrix.indices[a:b]].tolist(),
                matrix.data[a:b].tolist(),
                strict=True,
            )
        )
        for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    ]


def check_against_reference(templates, train, test, min_count):
    model = Templates(templates, min_count=min_count)
    fitted = model.fit_transform(train)
    for kind, names in (("U", model.get_feature_names_out()), ("B", model.get_edge_names_out())):
        lines = [line for line in templates if kind == "U" or PLACEHOLDER.search(line)]
        counts = Counter(name for row in expand_all(lines, train, kind) for name in row)
        kept = {name for name, count in counts.items() if count >= min_count}
        assert len(names) == len(set(names))
        assert set(names) == kept
        transform = model.transform if kind == "U" else model.transform_edges
        for data in (train, test):
            expected = [
                {n: float(c) for n, c in Counter(row).items() if n in kept}
                for row in expand_all(lines, data, kind)
            ]
            got = transform(data)
            assert named_rows(got, names) == expected
            assert got.lengths.tolist() == [len(sentence) for sentence in data]
    again = model.transform(train)
    assert (fitted.matrix != again.matrix).nnz == 0


# Values that contain separators, marks and each other's prefixes, so that different tuples give one text.
values = st.sampled_from(["a", "b", "/", "a/", "/b", "|", "", "_B-1", "_B+1", "1:", "é", "0a"])
sentences = st.lists(st.lists(st.tuples(values, values), max_size=5), min_size=1, max_size=5)
placeholders = st.builds(
    lambda row, column: f"%x[{row},{column}]", st.integers(-3, 3), st.integers(0, 1)
)


@st.composite
def template_lines(draw):
    head = draw(st.sampled_from(["U", "U:", "U0", "U0:", "U01:", "U02:", "B", "B:", "B1:"]))
    parts = draw(st.lists(placeholders, max_size=3))
    gaps = draw(
        st.lists(st.sampled_from(["", "/", "|", "//"]), min_size=len(parts), max_size=len(parts))
    )
    text = head
    for part, gap in zip(parts, gaps, strict=True):
        text += part + gap
    return text


@settings(max_examples=300, deadline=None)
@given(
    st.lists(template_lines(), min_size=1, max_size=6),
    sentences.filter(any),
    sentences,
    st.integers(1, 3),
    st.sampled_from([0, 5, 1 << 18]),
)
def test_equals_crfpp_on_adversarial_values(templates, train, test, min_count, max_slots):
    with pytest.MonkeyPatch.context() as patch:  # fitted tables as dense arrays, and as hash tables
        patch.setattr("seqlab.features.templates._feature_table.MAX_DENSE_SLOTS", max_slots)
        check_against_reference(templates, train, test, min_count)


@pytest.mark.parametrize("max_slots", [0, 1 << 18])
def test_equals_crfpp_on_full_tables(monkeypatch, max_slots):
    monkeypatch.setattr("seqlab.features.templates._feature_table.MAX_DENSE_SLOTS", max_slots)
    rng = np.random.default_rng(0)
    train, test = (
        [[(f"w{n}", "") for n in rng.integers(0, size, 30)] for _ in range(150)]
        for size in (60, 70)
    )
    templates = ["U1:%x[0,0]/%x[1,0]", "U2:%x[-1,0]/%x[0,0]/%x[1,0]", "U3:%x[0,0]"]
    check_against_reference(templates, train, test, 1)


@settings(max_examples=30, deadline=None)
@given(sentences.filter(any), sentences, st.integers(1, 2))
def test_equals_crfpp_on_the_chunking_template(train, test, min_count):
    check_against_reference(crfpp_chunking_templates(), train, test, min_count)


def test_different_tuples_with_the_same_text():
    # "a/" before "b" and "a" before "/b" give the same text; `fit` has not seen the second pair.
    model = Templates(["U:%x[0,0]/%x[1,0]"]).fit([["a/", "b"], ["c", "d"]])
    names = model.get_feature_names_out()
    assert named_rows(model.transform([["a", "/b"]]), names)[0] == {"U:a//b": 1}
    check_against_reference(
        ["U:%x[0,0]/%x[1,0]"],
        [[("a/", ""), ("b", "")], [("a", ""), ("/b", "")]],
        [[("a", ""), ("/b", "")]],
        min_count=2,
    )


def test_example_of_the_crfpp_documentation():
    # The current token is "the DT".
    sentence = [
        ("He", "PRP"),
        ("reckons", "VBZ"),
        ("the", "DT"),
        ("current", "JJ"),
        ("account", "NN"),
    ]
    templates = [
        "U1:%x[0,0]",
        "U2:%x[0,1]",
        "U3:%x[-1,0]",
        "U4:%x[-2,1]",
        "U5:%x[0,0]/%x[0,1]",
        "U6:ABC%x[0,1]123",
    ]
    model = Templates(templates)
    row = named_rows(model.fit_transform([sentence]), model.get_feature_names_out())[2]
    assert row == dict.fromkeys(
        ["U1:the", "U2:DT", "U3:reckons", "U4:PRP", "U5:the/DT", "U6:ABCDT123"], 1.0
    )


def test_templates_without_numbers_form_a_bag():
    model = Templates(["U:%x[-1,0]", "U:%x[1,0]"])
    rows = named_rows(model.fit_transform([["a", "b", "a"]]), model.get_feature_names_out())
    assert rows == [{"U:_B-1": 1, "U:b": 1}, {"U:a": 2}, {"U:b": 1, "U:_B+1": 1}]


def test_matrix_is_canonical():
    matrix = Templates.default().fit_transform(SENTENCES).matrix
    assert matrix.dtype == np.float64
    assert matrix.indices.dtype == np.int32
    matrix.has_sorted_indices = False
    for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        assert (np.diff(matrix.indices[a:b]) > 0).all()


def test_unseen_values_are_ignored():
    model = Templates(["U0:%x[0,0]", "U1:%x[0,0]/%x[0,1]"]).fit(SENTENCES)
    names = model.get_feature_names_out()
    rows = named_rows(model.transform([[("new", "DT"), ("the", "NN"), ("the", "DT")]]), names)
    assert rows == [{}, {"U0:the": 1}, {"U0:the": 1, "U1:the/DT": 1}]


def test_python_specs():
    templates = [(0, "word"), (-1, 1, "lower"), [(-1, "pos"), (0, "pos")], (0, 0, "prefix3"), "B"]
    model = Templates(templates).fit(SENTENCES[:1])
    rows = named_rows(model.transform(SENTENCES[:1]), model.get_feature_names_out())
    assert rows[0] == dict.fromkeys(
        ["word[0]=He", "pos[-1].lower=_B-1", "pos[-1]|pos[0]=_B-1|PRP"], 1
    )
    assert rows[1] == dict.fromkeys(
        [
            "word[0]=reckons",
            "pos[-1].lower=prp",
            "pos[-1]|pos[0]=PRP|VBZ",
            "word[0].prefix3=rec",
        ],
        1,
    )


def test_chunking_has_the_attributes_of_crfsuite():
    def attributes(sentence):
        """The attributes of CRFsuite's chunking example, for fields ``w pos``."""
        windows = [("w", [w]) for w in range(-2, 3)] + [("w", [-1, 0]), ("w", [0, 1])]
        windows += [("pos", [p]) for p in range(-2, 3)]
        windows += [("pos", [p, p + 1]) for p in range(-2, 2)]
        windows += [("pos", [p, p + 1, p + 2]) for p in range(-2, 1)]
        rows = []
        for t in range(len(sentence)):
            row = set()
            for field, places in windows:
                if all(0 <= t + place < len(sentence) for place in places):
                    name = "|".join(f"{field}[{place}]" for place in places)
                    text = "|".join(sentence[t + p][field == "pos"] for p in places)
                    row.add(f"{name}={text}")
            rows.append(row)
        if rows:
            rows[0].add("__BOS__")
            rows[-1].add("__EOS__")
        return rows

    model = Templates.chunking()
    got = named_rows(model.fit_transform(SENTENCES), model.get_feature_names_out())
    expected = [row for sentence in SENTENCES for row in attributes(sentence)]
    assert [set(row) for row in got] == expected
    assert {value for row in got for value in row.values()} == {1.0}


def test_default_templates_depend_on_the_number_of_columns():
    one = Templates.default().fit([[word for word, _ in s] for s in SENTENCES])
    two = Templates.default().fit(SENTENCES)
    three = Templates.default().fit([[(*token, "x") for token in s] for s in SENTENCES])
    assert "word[0].suffix2=he" in one.get_feature_names_out()
    assert "pos[-1]|pos[0]=PRP|VBZ" in two.get_feature_names_out()
    assert "column2[0]=x" in three.get_feature_names_out()
    explicit = Templates.default(n_columns=2).fit(SENTENCES)
    assert explicit.get_feature_names_out().tolist() == two.get_feature_names_out().tolist()
    assert one.has_label_bigrams


def test_label_bigrams():
    model = Templates(["U:%x[0,0]", "B", "B01:%x[0,1]"])
    assert model.has_label_bigrams
    assert not Templates(["U:%x[0,0]"]).has_label_bigrams
    model.fit(SENTENCES)
    assert model.bigram_templates_ == ["B", "B01:%x[0,1]"]
    assert model.get_edge_names_out().tolist() == ["B01:VBZ", "B01:DT", "B01:NN"]
    edges = model.transform_edges(SENTENCES)
    assert edges.shape == (4, 3)
    assert edges[0].toarray().tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert edges[1].nnz == 0
