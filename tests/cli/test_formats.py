"""Other input formats (features, CoNLL-U, JSON lines), selected columns, encodings."""

from __future__ import annotations

import json

import pytest

import seqlab


def ok(result):
    assert result.exit_code == 0, result.stderr
    return result.stdout


CONLLU = """\
# text = Dogs bark
1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_
2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\tSpaceAfter=No

# text = don't run
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\trun\trun\tVERB\tVB\t_\t0\troot\t_\t_

"""


def test_conllu(run, tmp_path):
    file, out = tmp_path / "train.conllu", tmp_path / "m.seqlab"
    file.write_text(CONLLU)
    ok(run("train", file, "-o", out, "-c", "form,xpos", "-p", "c2=0.01"))
    assert seqlab.load(out).features_.n_features_in_ == 2
    blank = CONLLU.replace("NOUN", "_").replace("VERB", "_").replace("AUX", "_")
    tagged = ok(run("tag", out, stdin=blank.replace("PART", "_")))
    assert tagged == CONLLU
    lines = ok(run("tag", out, file, "--proba")).splitlines()
    assert "\tProba=0.9" in lines[1]
    assert "\tSpaceAfter=No|Proba=" in lines[2]
    report = json.loads(ok(run("evaluate", out, file, "--json")))
    assert report["token_accuracy"] == 1.0
    assert report["scheme"] is None
    xpos = tmp_path / "x.seqlab"
    ok(run("train", file, "-o", xpos, "-l", "xpos", "-p", "c2=0.01"))
    assert "NNS" in seqlab.load(xpos).classes_


CRFSUITE = "B\tw=the\tcap\nI\tw=dog:0.5\n\nO\tw=runs\n"


def test_crfsuite(run, tmp_path):
    file, out = tmp_path / "train.crfsuite", tmp_path / "m.seqlab"
    file.write_text(CRFSUITE)
    ok(run("train", file, "-o", out, "-p", "c2=0.01"))
    assert ok(run("tag", out, stdin=CRFSUITE)) == "B\tB\nI\tI\n\nO\tO\n\n"
    bare = "".join(line.partition("\t")[2] for line in CRFSUITE.splitlines(keepends=True))
    bare = bare.replace("w=dog:0.5\n", "w=dog:0.5\n\n")
    assert ok(run("tag", out, "--unlabeled", stdin=bare)) == "B\nI\n\nO\n\n"
    report = json.loads(ok(run("evaluate", out, file, "--json")))
    assert report["token_accuracy"] == 1.0
    assert "w=the" in ok(run("inspect", out))


def test_svmlight(run, tmp_path):
    file, out = tmp_path / "train.svm", tmp_path / "m.seqlab"
    text = "1 qid:1 1:1\n2 qid:1 2:1\n# note\n1 qid:2 1:1 3:0.5\n"
    file.write_text(text)
    ok(run("train", file, "-o", out, "-p", "c2=0.01"))
    unseen = text.replace("3:0.5", "3:0.5 9:1")
    assert ok(run("tag", out, stdin=unseen)) == "1\t1\n2\t2\n\n1\t1\n\n"
    assert json.loads(ok(run("evaluate", out, file, "--json")))["token_accuracy"] == 1.0
    assert "feature 0" in ok(run("inspect", out))


@pytest.mark.parametrize(
    "record",
    [
        {"tokens": ["the", "dog"], "labels": ["D", "N"]},
        {"tokens": [["the", "DT"], ["dog", "NN"]], "labels": ["D", "N"]},
        {"features": [{"word": "the"}, {"word": "dog", "n": 3}], "labels": ["D", "N"]},
        {"features": [["w=the"], ["w=dog"]], "labels": ["D", "N"]},
    ],
    ids=["words", "columns", "dicts", "bags"],
)
def test_jsonl(run, tmp_path, record):
    file, out = tmp_path / "train.jsonl", tmp_path / "m.seqlab"
    file.write_text(json.dumps(record) + "\n\n" + json.dumps(record) + "\n")
    ok(run("train", file, "-o", out, "-p", "c2=0.01"))
    asked = {key: value for key, value in record.items() if key != "labels"} | {"id": 7}
    tagged = json.loads(ok(run("tag", out, "--proba", "-n", "2", stdin=json.dumps(asked))))
    assert {key: tagged[key] for key in asked} == asked
    assert tagged["predicted"] == ["D", "N"]
    assert len(tagged["probability"]) == 2
    assert tagged["nbest"][0]["labels"] == ["D", "N"]
    assert json.loads(ok(run("evaluate", out, file, "--json")))["token_accuracy"] == 1.0


def test_templates_need_columns(run, tmp_path):
    file, template = tmp_path / "train.crfsuite", tmp_path / "t.tpl"
    file.write_text(CRFSUITE)
    template.write_text("U:%x[0,0]\n")
    result = run("train", file, "-o", tmp_path / "m", "-t", template)
    assert result.exit_code == 2
    assert "--template: crfsuite files already contain features" in result.stderr


@pytest.mark.parametrize(
    ("options", "train", "labelled", "bare"),
    [
        (["-l", "0"], "D the x\nN dog x\n", "D the x\nN dog x\n", "the x\ndog x\n"),
        (["-l", "1"], "the D x\ndog N x\n", "the ? x\ndog ? x\n", "the x\ndog x\n"),
        (["-c", "1"], "7 the x D\n8 dog x N\n", "1 the y D\n2 dog y D\n", "1 the y\n2 dog y\n"),
        (["-c", "2", "-l", "1"], "7 D the\n8 N dog\n", "1 ? the\n2 ? dog\n", "1 the\n2 dog\n"),
    ],
    ids=["first", "middle", "chosen", "chosen-after-label"],
)
def test_label_column_is_stored_in_the_model(run, tmp_path, options, train, labelled, bare):
    file, out = tmp_path / "train.txt", tmp_path / "m.seqlab"
    file.write_text(train * 3)
    ok(run("train", file, "-o", out, *options, "-p", "c2=0.01"))
    for text in (labelled, bare):
        tagged = ok(run("tag", out, stdin=text))
        assert [line.split(" ")[-1] for line in tagged.splitlines()] == ["D", "N"]
        assert [line.rpartition(" ")[0] for line in tagged.splitlines()] == text.splitlines()


def test_models_saved_from_python(run, tmp_path):
    bags = tmp_path / "crf.seqlab"
    X, y = [[["w=the"], ["w=dog"]]], [["D", "N"]]
    seqlab.save(seqlab.LinearChainCRF(c2=0.01).fit(X, y), bags)
    assert ok(run("tag", bags, "--unlabeled", stdin="w=the\nw=dog\n")) == "D\nN\n\n"
    columns = tmp_path / "tagger.seqlab"
    tagger = seqlab.Tagger(seqlab.Templates.default(), seqlab.LinearChainCRF(c2=0.01))
    seqlab.save(tagger.fit([[("the",), ("dog",)]], y), columns)
    assert ok(run("tag", columns, stdin="the\ndog\n")) == "the D\ndog N\n"
    assert ok(run("tag", columns, stdin="the\tX\ndog\tX\n")) == "the\tX\tD\ndog\tX\tN\n"


@pytest.fixture
def latin1(run, tmp_path):
    """A model trained on a file in latin-1, and that file."""
    file, out = tmp_path / "train.txt", tmp_path / "m.seqlab"
    file.write_bytes("café N\nmûr A\n\nthé N\n".encode("latin-1") * 3)
    ok(run("train", file, "-o", out, "--encoding", "latin-1", "-p", "c2=0.01", "-q"))
    return out, file


def test_encoding_is_stored_in_the_model(run, tmp_path, latin1):
    model, file = latin1
    tagged = tmp_path / "tagged.txt"
    ok(run("tag", model, file, "-o", tagged))
    assert tagged.read_bytes().startswith("café N N\nmûr A A\n".encode("latin-1"))
    report = json.loads(ok(run("evaluate", model, file, "--json")))
    assert report["token_accuracy"] == 1.0
    words = tmp_path / "words.txt"
    words.write_bytes("café mûr\n".encode("latin-1"))
    ok(run("tag", model, words, "-f", "text", "-o", tagged))
    assert tagged.read_bytes() == "café N\nmûr A\n\n".encode("latin-1")


def test_encoding_option_takes_precedence_over_the_model(run, tmp_path, latin1):
    model, _ = latin1
    other, tagged = tmp_path / "utf8.txt", tmp_path / "tagged.txt"
    other.write_text("café N\nmûr A\n", encoding="utf-8")
    ok(run("tag", model, other, "-o", tagged, "--encoding", "utf-8"))
    assert tagged.read_text(encoding="utf-8") == "café N N\nmûr A A\n"
    report = json.loads(ok(run("evaluate", model, other, "--encoding", "utf-8", "--json")))
    assert report["token_accuracy"] == 1.0
