"""CoNLL-U, CRFsuite, SVM-light, JSON lines and data frames: cases and errors."""

import io

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from seqlab.data import InputError
from seqlab.data.io import (
    ReadError,
    WriteError,
    iter_frame,
    read_conllu,
    read_crfsuite,
    read_frame,
    read_jsonl,
    read_svmlight,
    write_conllu,
    write_crfsuite,
    write_frame,
    write_jsonl,
    write_svmlight,
)

CONLLU = """\
# sent_id = 1
# text = I haven't
1\tI\tI\tPRON\tPRP\tCase=Nom\t2\tnsubj\t_\t_
2-3\thaven't\t_\t_\t_\t_\t_\t_\t_\t_
2\thave\thave\tAUX\tVBP\t_\t0\troot\t_\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_
3.1\tgone\tgo\tVERB\tVBN\t_\t_\t_\t_\t_

# text = #
1\t#\t#\tSYM\tNN\t_\t0\troot\t_\t_
"""


def test_conllu_words_only():
    X, y = read_conllu(io.StringIO(CONLLU), columns=["form", "lemma"])
    assert X == [[("I", "I"), ("have", "have"), ("n't", "not")], [("#", "#")]]
    assert y == [["PRON", "AUX", "PART"], ["SYM"]]
    assert read_conllu(io.StringIO(CONLLU), label="xpos")[1][1] == ["NN"]
    assert read_conllu(io.StringIO(CONLLU), label="feats")[1][0] == ["Case=Nom", "_", "_"]
    assert read_conllu(io.StringIO(CONLLU), label=None)[1] is None


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("1\ta\ta\tX\n", 1, "4 tab-separated columns, but CoNLL-U has 10"),
        (CONLLU.replace("\tAUX\t", "\t_\t"), 5, "the label is missing"),
        (CONLLU.replace("3\tn't", "x\tn't"), 6, "'x' is not a word number"),
        ("# only a comment\n", None, "empty"),
    ],
)
def test_conllu_errors(text, line, reason):
    with pytest.raises(ReadError, match=reason) as caught:
        read_conllu(io.StringIO(text))
    assert caught.value.line == line


def test_conllu_fields():
    with pytest.raises(InputError, match="no field 'word'"):
        read_conllu(io.StringIO(CONLLU), columns=["word"])
    for options in ({"columns": ["id"]}, {"columns": ["upos"]}, {"label": "id"}):
        with pytest.raises(InputError):
            write_conllu([["a"]], [["X"]], io.StringIO(), **options)
    for token in (("a\tb",), ("",), ("a", "b"), ("a\n",)):
        with pytest.raises(WriteError, match=r"X\[0\]\[0\]"):
            write_conllu([[token]], [["X"]], io.StringIO())


def test_crfsuite_values_and_escapes():
    text = "B\tw=a\\:b\tx:2.5\tw=c\\\\\nO\ta\ta:2\t\n\nI\\:1\n"
    X, y = read_crfsuite(io.StringIO(text))
    assert X == [[{"w=a:b": 1.0, "x": 2.5, "w=c\\": 1.0}, {"a": 3.0}], [{}]]
    assert y == [["B", "O"], ["I:1"]]
    X, y = read_crfsuite(io.StringIO("a\tb:2\n"), labeled=False)
    assert (X, y) == ([[{"a": 1.0, "b": 2.0}]], None)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("B\ta:x\n", 1, "'x' in 'a:x' is not a number"),
        ("B\ta\nB\ta:b:1\n", 2, "not a number"),
        ("B\ta:nan\n", 1, "not a number"),
        ("\ta\n", 1, "the label is missing"),
        ("B\ta\\\n", 1, "escape"),
        ("\n", None, "empty"),
    ],
)
def test_crfsuite_errors(text, line, reason):
    with pytest.raises(ReadError, match=reason) as caught:
        read_crfsuite(io.StringIO(text))
    assert caught.value.line == line


def test_crfsuite_writes_dicts_and_bags():
    out = io.StringIO()
    write_crfsuite([[{"a": True, "b": "x", "c": False, "d": 0.1}, ["p", "q:r"]]], None, out)
    assert out.getvalue() == "a\tb=x\tc:0.0\td:0.1\np\tq\\:r\n\n"
    for item in ({"a\t": 1}, {"": 1}, {"a": np.nan}, "word", ("w", "p")):
        with pytest.raises(WriteError):
            write_crfsuite([[item]], [["X"]], io.StringIO())


def test_svmlight_sequences():
    text = "# head\n2 qid:1 1:0.5 3:1 # c\n-1 qid:1\n\n1.5 qid:9 2:1e-3\n"
    X, y = read_svmlight(io.StringIO(text))
    assert [x.toarray().tolist() for x in X] == [[[0.5, 0, 1], [0, 0, 0]], [[0, 0.001, 0]]]
    assert y[0].tolist() == [2, -1]
    assert y[0].dtype.kind == "i"
    assert y[1].tolist() == [1.5]
    X, _ = read_svmlight(io.StringIO("1 qid:1 0:2\n"), zero_based=True, n_features=5)
    assert X[0].toarray().tolist() == [[2, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("1 1:2\n", 1, "the qid is missing"),
        ("qid:1 1:2\n", 1, "the label is missing"),
        ("x qid:1 1:2\n", 1, "'x' is not a number"),
        ("1 qid:1 1:2\n1 qid:2 1:2\n1 qid:1 1:2\n", 3, "qid 1 occurs again"),
        ("1 qid:1 a:2\n", 1, "'a:2' is not of the form 'feature:value'"),
        ("1 qid:1 1:x\n", 1, "is not of the form 'feature:value'"),
        ("1 qid:1 1:inf\n", 1, "is not of the form 'feature:value'"),
        ("1 qid:1 0:1\n", 1, "start at 1"),
        ("1 qid:1 1:1 1:2\n", 1, "repeated"),
        ("1 qid:1 9:1\n", 1, "n_features=8"),
        ("# nothing\n", None, "empty"),
    ],
)
def test_svmlight_errors(text, line, reason):
    with pytest.raises(ReadError, match=reason) as caught:
        read_svmlight(io.StringIO(text), n_features=8)
    assert caught.value.line == line


def test_svmlight_rejects_what_the_format_cannot_represent():
    for x, y in (
        (np.array([[np.nan]]), [1]),
        (np.ones((1, 2)), ["B-NP"]),
        (np.ones((1, 2)), [np.inf]),
        (np.ones((0, 2)), []),
        (np.ones((1, 2)), [1, 2]),
    ):
        with pytest.raises(WriteError):
            write_svmlight([x], [y], io.StringIO())


def test_svmlight_agrees_with_scikit_learn(tmp_path):
    from sklearn.datasets import load_svmlight_file

    rng = np.random.RandomState(0)
    X = [sp.random(n, 7, density=0.5, format="csr", random_state=rng) for n in (3, 1, 4)]
    y = [rng.randint(0, 5, size=x.shape[0]) for x in X]
    write_svmlight(X, y, tmp_path / "a.svm")
    matrix, labels, qid = load_svmlight_file(tmp_path / "a.svm", n_features=7, query_id=True)
    np.testing.assert_array_equal(matrix.toarray(), sp.vstack(X).toarray())
    np.testing.assert_array_equal(labels, np.concatenate(y))
    np.testing.assert_array_equal(qid, [1, 1, 1, 2, 3, 3, 3, 3])


def test_json_lines_kinds():
    text = (
        '{"id": 7, "tokens": ["a", "b"], "labels": ["X", ["X", "Y"]]}\n\n'
        '{"tokens": [["a", "DT"]], "labels": [null]}\n'
        '{"features": [["p", "q"], []], "labels": [1, 2]}\n'
        '{"features": [[1, 2.5]], "labels": [true]}\n'
        '{"tokens": [{"w": "a"}], "labels": ["X"]}\n'
        '{"tokens": [], "labels": []}\n'
    )
    X, y = read_jsonl(io.StringIO(text))
    assert X[:3] == [[("a",), ("b",)], [("a", "DT")], [["p", "q"], []]]
    np.testing.assert_array_equal(X[3], [[1, 2.5]])
    assert X[4:] == [[{"w": "a"}], []]
    assert y == [["X", {"X", "Y"}], [None], [1, 2], [True], ["X"], []]
    X, y = read_jsonl(io.StringIO('{"words": ["a"], "tags": ["X"]}'), tokens="words", label="tags")
    assert (X, y) == ([[("a",)]], [["X"]])
    assert read_jsonl(io.StringIO('{"tokens": ["a"]}'), label=None) == ([[("a",)]], None)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('{"tokens": ["a"], "labels": ["X"]}\n{"tokens"', 2, "not valid JSON: .* at column"),
        ("[1, 2]", 1, "not a JSON object"),
        ('{"words": ["a"]}', 1, "no key 'tokens' in the object; its keys: 'words'"),
        ('{"tokens": ["a"]}', 1, "no key 'labels'"),
        ('{"tokens": "a", "labels": ["X"]}', 1, "'tokens' is not a list"),
        ('{"tokens": ["a", "b"], "labels": ["X"]}', 1, "2 tokens but 1 labels"),
        ('{"tokens": ["a", 1], "labels": ["X", "X"]}', 1, "all strings"),
        ('{"features": [[1], [1, 2]], "labels": ["X", "X"]}', 1, "equal numbers of numbers"),
        ('{"tokens": ["a"], "labels": [{}]}', 1, "is not a label"),
        ('{"tokens": ["a"], "labels": [[{}]]}', 1, "is not a label"),
        ("[" * 100_000, 1, "nested too deeply"),
        ("", None, "empty"),
    ],
)
def test_json_lines_errors(text, line, reason):
    with pytest.raises(ReadError, match=reason) as caught:
        read_jsonl(io.StringIO(text))
    assert caught.value.line == line


def test_json_lines_write_numpy_and_sparse():
    out = io.StringIO()
    X = [sp.csr_matrix([[0, 1.5]]), [{"n": np.int64(3), "f": np.float64(0.5)}]]
    write_jsonl(X, [np.array(["X"]), np.array([1])], out)
    again, y = read_jsonl(io.StringIO(out.getvalue()))
    np.testing.assert_array_equal(again[0], [[0, 1.5]])
    assert again[1] == [{"n": 3, "f": 0.5}]
    assert y == [["X"], [1]]
    for bad in (np.array([[np.nan]]), [{"a": object()}]):
        with pytest.raises(WriteError, match=r"X\[0\]"):
            write_jsonl([bad], None, io.StringIO())


FRAME = pd.DataFrame(
    {
        "doc": ["p", "p", "q"],
        "word": ["a", "b", "c"],
        "size": [1, 2, 3],
        "tag": ["X", "Y", "X"],
    }
)


def test_frame_kinds_of_steps():
    X, y = read_frame(FRAME, group="doc", label="tag", columns=["word"])
    assert (X, y) == ([[("a",), ("b",)], [("c",)]], [["X", "Y"], ["X"]])
    X, y = read_frame(FRAME, group="doc", columns=["size"])
    assert [x.tolist() for x in X] == [[[1.0], [2.0]], [[3.0]]]
    assert y is None
    X, _ = read_frame(FRAME, group="doc", label="tag")
    assert X[0] == [{"word": "a", "size": 1}, {"word": "b", "size": 2}]


def test_frame_in_chunks():
    whole = read_frame(FRAME, group="doc", label="tag", columns=["word"])
    for cut in range(4):
        pieces = [FRAME.iloc[:cut], FRAME.iloc[cut:]]
        got = list(iter_frame(pieces, group="doc", label="tag", columns=["word"]))
        assert ([x for x, _ in got], [y for _, y in got]) == whole


@pytest.mark.parametrize(
    ("frame", "line", "reason"),
    [
        (FRAME.iloc[[0, 2, 1]], 3, "group 'p' occurs again after another"),
        (FRAME.assign(tag=["X", None, "Y"]), 2, "the label is missing"),
        (FRAME.assign(doc=[None, "p", "q"]), 1, "the group is missing"),
        (FRAME.drop(columns="tag"), None, "no column 'tag'; the frame has 'doc', 'word', 'size'"),
        (FRAME.iloc[:0], None, "no rows"),
        (FRAME.assign(word=["a", None, "c"]).drop(columns="size"), None, "missing value"),
    ],
)
def test_frame_errors(frame, line, reason):
    with pytest.raises(ReadError, match=reason) as caught:
        read_frame(frame, group="doc", label="tag")
    assert caught.value.line == line


def test_frame_column_names_and_steps_must_fit():
    with pytest.raises(WriteError, match="exist already"):
        write_frame([[{"label": 1}]], [["X"]])
    with pytest.raises(WriteError, match="do not match"):
        write_frame([[("a",), ("b", "c")]], None)
    with pytest.raises(WriteError, match="empty"):
        write_frame([[]], None)
    with pytest.raises(InputError, match="no columns"):
        read_frame(FRAME[["doc", "tag"]], group="doc", label="tag")
    assert write_frame([], None).empty
