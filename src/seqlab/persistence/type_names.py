"""Names of types in model files, which stay the same when a class moves to another module.

skops writes the module and the class of every object into the schema of a file. For types of seqlab,
`save` replaces the module by ``seqlab`` and the class by the key of `SAVED_TYPES`; `load` does the
reverse. Files of format versions 1 and 2 hold the module paths of their time: there the class name
alone decides, because the keys of `SAVED_TYPES` are the class names of these versions.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from seqlab.persistence.errors import ModelFileError

SAVED_TYPES = {
    "BernoulliEmissions": "seqlab.models.hmm._discrete_emissions.BernoulliEmissions",
    "BracketFeatures": "seqlab.features.brackets.BracketFeatures",
    "CategoricalEmissions": "seqlab.models.hmm._discrete_emissions.CategoricalEmissions",
    "ChainStructure": "seqlab.structures.chain.structure.ChainStructure",
    "ClassifierHMM": "seqlab.models.combinators.classifier_hmm.ClassifierHMM",
    "Conjunctions": "seqlab.features.conjunctions.Conjunctions",
    "CountLimit": "seqlab.inference.phrases.constraints.CountLimit",
    "Covered": "seqlab.inference.phrases.constraints.Covered",
    "FeaturePattern": "seqlab.structures.chain.pattern.FeaturePattern",
    "FullGaussianEmissions": "seqlab.models.hmm._gaussian_emissions.FullGaussianEmissions",
    "GaussianEmissions": "seqlab.models.hmm._gaussian_emissions.GaussianEmissions",
    "Gazetteer": "seqlab.features.gazetteer.Gazetteer",
    "HMM": "seqlab.models.hmm.hmm.HMM",
    "HistoryColumns": "seqlab.models.combinators._history.HistoryColumns",
    "IndependentLabeler": "seqlab.meta.independent.IndependentLabeler",
    "LengthLimit": "seqlab.inference.phrases.constraints.LengthLimit",
    "LineFeatures": "seqlab.features.lines.LineFeatures",
    "LinearChainCRF": "seqlab.models.crf.LinearChainCRF",
    "LocalModel": "seqlab.models.combinators._history.LocalModel",
    "MEMM": "seqlab.models.combinators.memm.MEMM",
    "Mask": "seqlab.inference.scores.Mask",
    "MultinomialEmissions": "seqlab.models.hmm._discrete_emissions.MultinomialEmissions",
    "PhraseInference": "seqlab.models.phrases.phrase_inference.PhraseInference",
    "ProjectionMarkovModel": "seqlab.models.combinators.pmm.ProjectionMarkovModel",
    "Projections": "seqlab.models.combinators._projections.Projections",
    "Requires": "seqlab.inference.phrases.constraints.Requires",
    "SNoW": "seqlab.models.classifiers.snow.SNoW",
    "SequenceUnion": "seqlab.features.union.SequenceUnion",
    "SequenceVectorizer": "seqlab.features.vectorizer.vectorizer.SequenceVectorizer",
    "Sequences": "seqlab.data.sequences.Sequences",
    "StackedSequentialLearner": "seqlab.meta.stacked.StackedSequentialLearner",
    "StepPosteriors": "seqlab.models._posteriors.StepPosteriors",
    "StructuredPerceptron": "seqlab.models.perceptron.StructuredPerceptron",
    "SymbolVectorizer": "seqlab.models.hmm._symbols.SymbolVectorizer",
    "Tagger": "seqlab.meta.tagger.Tagger",
    "TemperedClassifier": "seqlab.models.classifiers.tempered.TemperedClassifier",
    "Templates": "seqlab.features.templates.templates.Templates",
    "TypeOrder": "seqlab.inference.phrases.constraints.TypeOrder",
    "Vocabulary": "seqlab.data.vocabulary.Vocabulary",
    "Window": "seqlab.features.window.Window",
}
"""Current path of each type of seqlab that a model file may hold. Keys never change: they are in files.
If a class moves or is renamed, change the value; a new type is added here."""

_STABLE_NAMES = {path: name for name, path in SAVED_TYPES.items()}
_STABLE_MODULE = "seqlab"

# A crafted file could crash the process with these: scikit-learn follows the node numbers in them
# without checks, so trusting the type means trusting the numbers (skops-dev/skops#535). A caller who
# knows the source of a file can name them.
TREE_TYPES = {
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
}
TRUSTED_TYPES = (
    *SAVED_TYPES.values(),
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    # Sparse matrices are read as arrays and their indices are checked; the type in the file does not matter.
    *(f"scipy.sparse._{k}.{k}_{form}" for k in ("csr", "csc") for form in ("matrix", "array")),
)
"""Types that a model file may hold in addition to those that skops trusts."""


def use_stable_names(schema: bytes) -> bytes:
    """Replace the paths of `SAVED_TYPES` in a schema by stable names."""

    def rename(module: str, name: str) -> tuple[str, str]:
        stable = _STABLE_NAMES.get(f"{module}.{name}")
        return (module, name) if stable is None else (_STABLE_MODULE, stable)

    return _rename_types(schema, rename)


def use_current_paths(schema: bytes, version: int) -> bytes:
    """Replace the stable names in a schema, or the paths in one of version 1 or 2, by current paths.

    Nothing is imported. A stable name that is not in `SAVED_TYPES` is a `ModelFileError`.
    """

    def rename(module: str, name: str) -> tuple[str, str]:
        if version < 3:
            is_ours = module.startswith(f"{_STABLE_MODULE}.") and name in SAVED_TYPES
        else:
            is_ours = module == _STABLE_MODULE
        if not is_ours:
            return module, name
        if name not in SAVED_TYPES:
            raise ModelFileError(f"it holds a type that this seqlab does not have: {module}.{name}")
        module, _, name = SAVED_TYPES[name].rpartition(".")
        return module, name

    return _rename_types(schema, rename)


def _rename_types(schema: bytes, rename: Callable[[str, str], tuple[str, str]]) -> bytes:
    """Apply a function to the (module, class) pairs of a schema."""
    root = json.loads(schema)
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, dict):
            module, name = node.get("__module__"), node.get("__class__")
            # In a dict of the user with such keys, the values are nodes, not strings.
            if isinstance(module, str) and isinstance(name, str):
                node["__module__"], node["__class__"] = rename(module, name)
            stack.extend(node.values())
    return json.dumps(root).encode()
