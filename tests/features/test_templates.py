"""Templates against a plain-Python expansion of CRF++ templates, and by hand."""

import pickle
import re
from collections import Counter, namedtuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from seqlab.data import InputError, Sequences
from seqlab.features import Templates
from seqlab.features.template_sets import crfpp_chunking_templates

HOLE = re.compile(r"%x\[(-?\d+),(\d+)\]")
SENTENCES = [
    [("He", "PRP"), ("reckons", "VBZ"), ("the", "DT"), ("deficit", "NN")],
    [("Go", "VB")],
    [],
    [("the", "DT"), ("the", "DT")],
]


def expand(template, sentence, t):
    """Expand a CRF++ template at step t: what the documentation of CRF++ says, word by word."""

    def value(hole):
        position, column = t + int(hole[1]), int(hole[2])
        if position < 0:
            return f"_B{position}"
        if position >= len(sentence):
            return f"_B+{position - len(sentence) + 1}"
        return sentence[position][column]

    return HOLE.sub(value, template)


def expand_all(templates, sentences, kind):
    """Names of the features of every step, in order, as CRF++ builds them."""
    own = [template for template in templates if template[0] == kind]
    rows = []
    for sentence in sentences:
        for t in range(len(sentence)):
            skipped = kind == "B" and t == 0
            rows.append([] if skipped else [expand(one, sentence, t) for one in own])
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
        lines = [one for one in templates if kind == "U" or HOLE.search(one)]
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


# Values with separators, marks and prefixes of each other, so that texts collide.
values = st.sampled_from(["a", "b", "/", "a/", "/b", "|", "", "_B-1", "_B+1", "1:", "é", "0a"])
sentences = st.lists(st.lists(st.tuples(values, values), max_size=5), min_size=1, max_size=5)
holes = st.builds(lambda row, column: f"%x[{row},{column}]", st.integers(-3, 3), st.integers(0, 1))


@st.composite
def template_lines(draw):
    head = draw(st.sampled_from(["U", "U:", "U0", "U0:", "U01:", "U02:", "B", "B:", "B1:"]))
    parts = draw(st.lists(holes, max_size=3))
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
def test_equals_crfpp_on_adversarial_values(templates, train, test, min_count, max_places):
    with pytest.MonkeyPatch.context() as patch:  # finished tables as arrays, and as hash tables
        patch.setattr("seqlab.features.feature_table.MAX_PLACES", max_places)
        check_against_reference(templates, train, test, min_count)


@pytest.mark.parametrize("max_places", [0, 1 << 18])
def test_crowded_tables(monkeypatch, max_places):
    monkeypatch.setattr("seqlab.features.feature_table.MAX_PLACES", max_places)
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


def test_texts_that_two_tuples_share():
    # "a/" before "b" and "a" before "/b" give the same text; the second pair is new to transform.
    model = Templates(["U:%x[0,0]/%x[1,0]"]).fit([["a/", "b"], ["c", "d"]])
    names = model.get_feature_names_out()
    assert named_rows(model.transform([["a", "/b"]]), names)[0] == {"U:a//b": 1}
    check_against_reference(
        ["U:%x[0,0]/%x[1,0]"],
        [[("a/", ""), ("b", "")], [("a", ""), ("/b", "")]],
        [[("a", ""), ("/b", "")]],
        min_count=2,
    )


def test_documented_example():
    # The example of CRF++'s documentation: current token "the DT".
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


def test_templates_without_numbers_make_a_bag():
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


def test_crfsuite_attributes():
    def attributes(sentence):
        """The chunking example of CRFsuite, for fields ``w pos``."""
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


def test_default_adapts_to_the_columns():
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


# What goes in.


def test_forms_of_input_agree():
    pandas = pytest.importorskip("pandas")
    model = Templates.chunking("crfpp").fit(SENTENCES)
    expected = model.transform(SENTENCES[:2]).matrix
    token = namedtuple("token", "form tag")
    forms = {
        "lists": [[list(t) for t in s] for s in SENTENCES[:2]],
        "named": [[token(*t) for t in s] for s in SENTENCES[:2]],
        "arrays": [np.array(s) for s in SENTENCES[:2]],
        "frames": [pandas.DataFrame(s, columns=["word", "pos"]) for s in SENTENCES[:2]],
        "generator": (s for s in SENTENCES[:2]),
        "object array": np.array([*SENTENCES[:2], []], dtype=object)[:2],
        "wider": [[(*t, "B-NP") for t in s] for s in SENTENCES[:2]],
    }
    for name, data in forms.items():
        assert (model.transform(data).matrix != expected).nnz == 0, name


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    token = namedtuple("token", "form tag")
    template = [(0, 1)]
    frame = pandas.DataFrame(SENTENCES[0], columns=["surface", "upos"])
    assert Templates(template).fit([frame]).column_names_ == ("surface", "upos")
    assert Templates(template).fit([[token("a", "b")]]).column_names_ == ("form", "tag")
    named = Templates(template, columns=["w", "p"]).fit(SENTENCES)
    assert named.get_feature_names_out()[0] == "p[0]=PRP"


@pytest.mark.parametrize("block_steps", [1, 2, 3, 1000])
def test_blocks_do_not_show(monkeypatch, block_steps):
    whole = Templates.default().fit(SENTENCES)
    expected = whole.transform(SENTENCES)
    monkeypatch.setattr(
        "seqlab.features.columns.token_blocks.__kwdefaults__", {"block_steps": block_steps}
    )
    cut = Templates.default()
    fitted = cut.fit_transform(iter(SENTENCES))
    assert cut.get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()
    for got in (fitted, cut.transform(iter(SENTENCES)), whole.transform(SENTENCES)):
        assert (got.matrix != expected.matrix).nnz == 0
        assert got.offsets.tolist() == expected.offsets.tolist()


def test_memory_between_calls_is_bounded(monkeypatch):
    monkeypatch.setattr("seqlab.features.templates._MAX_REMEMBERED", 3)
    model = Templates.chunking("crfpp").fit(SENTENCES)
    expected = model.transform(SENTENCES).matrix
    for k in range(5):
        model.transform([[(f"w{k}", "NN")]])
    assert model._runtime.reader.n_values <= 7
    assert (model.transform(SENTENCES).matrix != expected).nnz == 0


def test_empty_input_to_transform():
    model = Templates.default().fit(SENTENCES)
    assert model.transform([]).shape == (0, model.n_features_out_)
    assert model.transform([[], []]).lengths.tolist() == [0, 0]


# Manners of an estimator.


def test_pickle_and_clone():
    model = Templates.default(min_count=2).fit(SENTENCES)
    expected = model.transform(SENTENCES)
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.transform(SENTENCES).matrix != expected.matrix).nnz == 0
    assert copy.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()
    fresh = clone(model)
    assert fresh.min_count == 2
    assert not hasattr(fresh, "vocabularies_")


def test_skops_round_trip():
    skops_io = pytest.importorskip("skops.io")
    lines = ["U:%x[0,0]", "U1:%x[0,0]/%x[0,1]", "B1:%x[0,0]"]
    for model in (
        Templates(lines),
        Templates.chunking(),
        Templates([(0, 0, "shape"), [(0, 0), (0, 1)]]),
    ):
        model.fit(SENTENCES)
        data = skops_io.dumps(model)
        copy = skops_io.loads(data, trusted=skops_io.get_untrusted_types(data=data))
        assert (copy.transform(SENTENCES).matrix != model.transform(SENTENCES).matrix).nnz == 0


def test_later_changes_of_parameters_do_not_touch_the_fit():
    model = Templates(["U:%x[-1,0]"]).fit(SENTENCES)
    expected = model.transform(SENTENCES).matrix
    model.set_params(templates=["U:%x[1,0]"], boundary="skip")
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.transform(SENTENCES).matrix != expected).nnz == 0


def test_pipeline_and_unfitted():
    pipeline = make_pipeline(Templates.chunking("crfpp"))
    assert isinstance(pipeline.fit_transform(SENTENCES), Sequences)
    assert len(pipeline.get_feature_names_out()) == pipeline[-1].n_features_out_
    with pytest.raises(ValueError, match="not fitted"):
        Templates().transform(SENTENCES)


def test_threads_may_share_a_model():
    from concurrent.futures import ThreadPoolExecutor

    model = Templates.default().fit(SENTENCES)
    expected = model.transform(SENTENCES).matrix
    fresh = pickle.loads(pickle.dumps(model))
    data = [[*SENTENCES, [(f"new{k}", "X")]] for k in range(20)]
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(fresh.transform, data):
            assert (result.matrix[: expected.shape[0]] != expected).nnz == 0


# Bad input.


def test_missing_column():
    message = (
        'template "U03:%x[0,4]" (templates[1]) reads column 4 but tokens have 2 columns: '
        "word(0), pos(1)"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        Templates(["U:%x[0,0]", "U03:%x[0,4]"]).fit(SENTENCES)
    with pytest.raises(InputError, match="reads column 'tag' but tokens have 2 columns"):
        Templates([(0, "tag")]).fit(SENTENCES)
    model = Templates(["U:%x[0,0]", "U03:%x[0,1]"]).fit(SENTENCES)
    with pytest.raises(InputError, match=r"X\[1\]\[0\] has 1 column, but .*reads column 1 \(pos\)"):
        model.transform([[], ["a"]][:2])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[("a", "b"), ("c",)]], r"X\[0\]\[1\] has 1 columns but X\[0\]\[0\] has 2"),
        ([[("a", "b")], [("a", "b"), "c"]], r"X\[1\]\[1\] is a string but other tokens"),
        ([[("a", 1.5)]], r"column 1 of X\[0\]\[0\] is 1.5 \(float\), not a string"),
        ([[{"word": "a"}]], r"X\[0\]\[0\] is a dict; .*SequenceVectorizer"),
        ([[3]], r"X\[0\]\[0\] is a number; a token is"),
        ([("a", "b")], r"X\[0\] is a tuple of strings, which is one token; .*wrap"),
        (["a sentence"], r"X\[0\] is a string"),
        ("a sentence", "X is a string"),
        ([[], []], "holds no tokens"),
        ([], "holds no tokens"),
        ([7], r"X\[0\] is a number"),
    ],
)
def test_bad_tokens(data, message):
    with pytest.raises(InputError, match=message):
        Templates(["U:%x[0,0]/%x[0,1]"] if "column 1" in message else ["U:%x[0,0]"]).fit(data)


def test_widths_that_differ_between_blocks(monkeypatch):
    monkeypatch.setattr("seqlab.features.columns.token_blocks.__kwdefaults__", {"block_steps": 1})
    with pytest.raises(InputError, match=r"X\[1\]\[0\] has 1 columns but X\[0\]\[0\] has 2"):
        Templates(["U:%x[0,0]"]).fit([[("a", "b")], ["c"]])


def test_missing_values_of_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"word": ["a", None]})
    with pytest.raises(InputError, match=r"X\[0\] has missing values in column 'word'"):
        Templates([(0, "word")]).fit([frame])


@pytest.mark.parametrize(
    "params",
    [{"min_count": 0}, {"boundary": "none"}, {"templates": "chunk.tpl"}, {"templates": []}],
)
def test_bad_parameters(params):
    with pytest.raises(ValueError):
        Templates(**params).fit(SENTENCES)


def test_wrong_number_of_names():
    with pytest.raises(InputError, match="columns has 3 names but tokens have 2"):
        Templates([(0, 0)], columns=["a", "b", "c"]).fit(SENTENCES)


@pytest.mark.parametrize("value", [-1, 10**6])
def test_damaged_tables_are_refused(value):
    templates = Templates(["U1:%x[0,0]/%x[1,0]", "U2:%x[0,0]"]).fit(SENTENCES)
    templates.tables_[0][0, 1] = value
    with pytest.raises(InputError, match="damaged"):
        templates.transform(SENTENCES)
