"""Names of types in model files, which stay the same when a class moves to another module.

The description of a model names types of seqlab by the keys of `SAVED_TYPES`. In parts that skops stores
(objects of other libraries, which may contain types of seqlab, and whole files of format versions 1 to
3), skops writes the module and the class of every object; there `save` replaces the module by ``seqlab``
and the class by the key, and `load` does the reverse. Files of versions 1 and 2 hold the module paths of
their time: there the class name alone decides, because the keys are the class names of these versions.
"""

from __future__ import annotations

from seqlab.persistence.errors import ModelFileError

SAVED_TYPES = {
    "AtomVectorizer": "seqlab.relational.trees.atom_vectorizer.AtomVectorizer",
    "BernoulliEmissions": "seqlab.models.hmm._discrete_emissions.BernoulliEmissions",
    "BoostedCRF": "seqlab.models.boosted_crf.BoostedCRF",
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
    "KernelFeatures": "seqlab.kernels.low_rank.KernelFeatures",
    "LengthLimit": "seqlab.inference.phrases.constraints.LengthLimit",
    "LineFeatures": "seqlab.features.lines.LineFeatures",
    "GraphCRF": "seqlab.models.graphs.graph_crf.GraphCRF",
    "GraphM3N": "seqlab.models.graphs.graph_m3n.GraphM3N",
    "LinearChainCRF": "seqlab.models.crf.LinearChainCRF",
    "LocalModel": "seqlab.models.combinators._history.LocalModel",
    "M3N": "seqlab.models.m3n.M3N",
    "MEMM": "seqlab.models.combinators.memm.MEMM",
    "Mask": "seqlab.inference.scores.Mask",
    "MultinomialEmissions": "seqlab.models.hmm._discrete_emissions.MultinomialEmissions",
    "PatternHKL": "seqlab.relational.pattern_hkl.PatternHKL",
    "PhraseInference": "seqlab.models.phrases.phrase_inference.PhraseInference",
    "ProjectionMarkovModel": "seqlab.models.combinators.pmm.ProjectionMarkovModel",
    "Projections": "seqlab.models.combinators._projections.Projections",
    "QuerySet": "seqlab.relational.trees.query_set.QuerySet",
    "RelationalBoostedCRF": "seqlab.relational.trees.boosted_crf.RelationalBoostedCRF",
    "Requires": "seqlab.inference.phrases.constraints.Requires",
    "SNoW": "seqlab.models.classifiers.snow.SNoW",
    "SequenceUnion": "seqlab.features.union.SequenceUnion",
    "SequenceVectorizer": "seqlab.features.vectorizer.vectorizer.SequenceVectorizer",
    "Sequences": "seqlab.data.sequences.Sequences",
    "SequentialOutputCode": "seqlab.meta.output_code.SequentialOutputCode",
    "StackedSequentialLearner": "seqlab.meta.stacked.StackedSequentialLearner",
    "StepPosteriors": "seqlab.models._posteriors.StepPosteriors",
    "StructHKL": "seqlab.relational.hkl.struct_hkl.StructHKL",
    "StructuredPerceptron": "seqlab.models.perceptron.StructuredPerceptron",
    "StructuredSVM": "seqlab.models.structured_svm.StructuredSVM",
    "SubsequenceKernel": "seqlab.kernels.subsequence.SubsequenceKernel",
    "SymbolVectorizer": "seqlab.models.hmm._symbols.SymbolVectorizer",
    "Tagger": "seqlab.meta.tagger.Tagger",
    "TemperedClassifier": "seqlab.models.classifiers.tempered.TemperedClassifier",
    "Templates": "seqlab.features.templates.templates.Templates",
    "TreeEnsemble": "seqlab.learning.boosting.ensemble.TreeEnsemble",
    "TypeOrder": "seqlab.inference.phrases.constraints.TypeOrder",
    "Vocabulary": "seqlab.data.vocabulary.Vocabulary",
    "Window": "seqlab.features.window.Window",
}
"""Current path of each type of seqlab that a model file may hold. Keys never change: they are in files.
If a class moves or is renamed, change the value; a new type is added here."""

PLAIN_TYPES = SAVED_TYPES | {
    name: name for name in ("sklearn.pipeline.Pipeline", "sklearn.pipeline.FeatureUnion")
}
"""Types that are stored by their attributes, without skops: ours, and two that only hold other estimators."""

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


def stable_name(module: str, name: str) -> tuple[str, str]:
    """Return the stable module and class of a type of `SAVED_TYPES`; others stay as they are."""
    stable = _STABLE_NAMES.get(f"{module}.{name}")
    return (module, name) if stable is None else (_STABLE_MODULE, stable)


def current_path(module: str, name: str, version: int) -> tuple[str, str]:
    """Return the current module and class of a stable name, or of a path in a file of version 1 or 2.

    Nothing is imported. A stable name that is not in `SAVED_TYPES` is a `ModelFileError`.
    """
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
