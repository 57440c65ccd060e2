"""seqlab: sequence labelling with a scikit-learn-compatible API.

Public names are imported on first use, so that ``import seqlab`` is fast and loads neither
scikit-learn nor numba. Messages about training go to the logger ``seqlab``, which shows nothing unless the
program configures `logging`.

This module imports almost nothing: Ctrl-C can only be held back (`seqlab.cli`) after it.
"""

from __future__ import annotations

from importlib import import_module

from seqlab.utils.numba_cache import ensure_numba_cache

__version__ = "0.1.0"

TYPE_CHECKING = False  # for type checkers, which know the name; the module typing is not imported
if TYPE_CHECKING:
    from typing import Any

_MODULE_OF_NAME = {
    "BoostedCRF": "seqlab.models.boosted_crf",
    "ClassifierHMM": "seqlab.models.combinators",
    "HMM": "seqlab.models.hmm",
    "IndependentLabeler": "seqlab.meta.independent",
    "LineFeatures": "seqlab.features.lines",
    "GraphCRF": "seqlab.models.graphs.graph_crf",
    "GraphM3N": "seqlab.models.graphs.graph_m3n",
    "LinearChainCRF": "seqlab.models.crf",
    "M3N": "seqlab.models.m3n",
    "MEMM": "seqlab.models.combinators",
    "ModelFileError": "seqlab.persistence",
    "PatternHKL": "seqlab.relational.pattern_hkl",
    "PhraseInference": "seqlab.models.phrases",
    "ProjectionMarkovModel": "seqlab.models.combinators",
    "RelationalBoostedCRF": "seqlab.relational.trees.boosted_crf",
    "SNoW": "seqlab.models.classifiers",
    "SequenceVectorizer": "seqlab.features.vectorizer",
    "SequentialOutputCode": "seqlab.meta.output_code",
    "StackedSequentialLearner": "seqlab.meta.stacked",
    "StructHKL": "seqlab.relational.hkl",
    "StructuredPerceptron": "seqlab.models.perceptron",
    "StructuredSVM": "seqlab.models.structured_svm",
    "SubsequenceKernel": "seqlab.kernels",
    "Tagger": "seqlab.meta.tagger",
    "TemperedClassifier": "seqlab.models.classifiers",
    "Templates": "seqlab.features.templates",
    "load": "seqlab.persistence",
    "save": "seqlab.persistence",
}
_SUBPACKAGES = frozenset(
    {
        "data",
        "datasets",
        "features",
        "inference",
        "inspection",
        "kernels",
        "meta",
        "metrics",
        "models",
        "optim",
        "papers",
        "persistence",
        "relational",
        "structures",
    }
)

__all__ = sorted([*_MODULE_OF_NAME, "__version__"])

ensure_numba_cache(__path__[0])


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF_NAME:
        from seqlab.utils.signals import hold_interrupts

        with hold_interrupts():  # an interrupt inside an import can leave half a module behind
            value = getattr(import_module(_MODULE_OF_NAME[name]), name)
        globals()[name] = value
        return value
    if name in _SUBPACKAGES:
        return import_module(f"seqlab.{name}")
    raise AttributeError(f"module 'seqlab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBPACKAGES])
