"""The experiments with output codes: names, learners, and those that take less than a second."""

from __future__ import annotations

import pytest

from seqlab import BoostedCRF, LinearChainCRF, SequentialOutputCode, StructuredPerceptron
from seqlab.papers import output_codes
from seqlab.papers._output_code_runs import make_learner
from seqlab.papers.experiment import judge_claims, run, select


def test_claims_refer_to_experiments():
    names = [one.name for one in output_codes.EXPERIMENTS]
    assert len(names) == len(set(names))
    assert {name for claim in output_codes.CLAIMS for name in claim.needs} <= set(names)
    assert output_codes.TARGETS.keys() <= set(names)
    assert {f"{name}/cpu" for name in output_codes.CPU_LIMITS} <= set(names)


@pytest.mark.parametrize(
    ("name", "kind", "facts"),
    [
        ("gtb/iid", SequentialOutputCode, {"cascade": 0, "estimator__order": 0}),
        ("vp/i", SequentialOutputCode, {"cascade": 0, "estimator__order": 1}),
        ("gtb/c5", SequentialOutputCode, {"cascade": 5}),
        ("vp/call", SequentialOutputCode, {"cascade": "all"}),
        ("vp/call-160", SequentialOutputCode, {"cascade": "all", "code_length": 160}),
        ("gtb/auto", SequentialOutputCode, {"cascade": "auto"}),
        ("full/vp-beam-5", StructuredPerceptron, {"beam_width": 5}),
        ("full/gtb-beam-5", BoostedCRF, {"beam_width": 5}),
        ("full/crf", LinearChainCRF, {}),
    ],
)
def test_learners(name, kind, facts):
    learner = make_learner("nettalk", name, 0)
    assert isinstance(learner, kind)
    assert facts.items() <= learner.get_params().items()


@pytest.mark.parametrize("part", ["cycle", "xor"])
def test_small_experiments(part):
    results = list(run(select(output_codes.EXPERIMENTS, [part])))
    verdicts = judge_claims(output_codes.CLAIMS, results)
    assert [verdict.text for verdict in verdicts] == ["holds"]
    assert all(len(result.values) == output_codes.N_SEEDS for result in results)
