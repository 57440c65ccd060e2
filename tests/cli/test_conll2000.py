"""Chunking of CoNLL-2000 on the command line, with the template that is part of CRF++.

CRF++ itself reaches F1 93.74 with this template and cutoff 3 (``crf_learn -f 3 -c 1.0``). Its model has a
weight for every pair of feature and label and for every pair of labels, but none for the first and last
label; its ``c`` is ``1 / (2 c2)``.
"""

from __future__ import annotations

import json
import os

import pytest
from seqeval.metrics import f1_score

from seqlab.data.io import read_conll

TEMPLATE = """\
# Unigram
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]

U10:%x[-2,1]
U11:%x[-1,1]
U12:%x[0,1]
U13:%x[1,1]
U14:%x[2,1]
U15:%x[-2,1]/%x[-1,1]
U16:%x[-1,1]/%x[0,1]
U17:%x[0,1]/%x[1,1]
U18:%x[1,1]/%x[2,1]

U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U21:%x[-1,1]/%x[0,1]/%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]

# Bigram
B
"""
LIKE_CRFPP = ("c2=0.5", "all_states=true", "all_transitions=true", "boundary=false")


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif("SEQLAB_DATA" not in os.environ, reason="SEQLAB_DATA is not set")
def test_chunking_with_the_template_of_crfpp(run, tmp_path):
    def ok(*args):
        result = run(*args)
        assert result.exit_code == 0, result.stderr
        return result.stdout

    template, model, out = tmp_path / "chunk.tpl", tmp_path / "chunk.seqlab", tmp_path / "out.txt"
    template.write_text(TEMPLATE)
    ok("datasets", "export", "conll2000", tmp_path)
    train, test = tmp_path / "conll2000-train.conll", tmp_path / "conll2000-test.conll"
    params = [part for param in LIKE_CRFPP for part in ("-p", param)]
    ok("train", train, "-o", model, "-t", template, "--min-count", "3", *params, "-p", "tol=0.001")
    ok("tag", model, test, "-o", out)
    report = json.loads(ok("evaluate", "--pred", out, "--json"))["report"]["micro avg"]
    assert report["f1"] >= 0.936
    X, predicted = read_conll(out)
    gold = [[token[2] for token in tokens] for tokens in X]
    assert report["f1"] == pytest.approx(f1_score(gold, predicted), abs=1e-12)
    assert report == json.loads(ok("evaluate", model, test, "--json"))["report"]["micro avg"]
