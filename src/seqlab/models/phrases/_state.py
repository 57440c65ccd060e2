"""Check of the fitted attributes of a `PhraseInference` that comes from a model file."""

from __future__ import annotations

from typing import Any

import numpy as np

from seqlab.data import state_checks
from seqlab.inference.phrases.constraints import check_constraints
from seqlab.models._posteriors import StepPosteriors
from seqlab.models.phrases._targets import output_classes


def check_phrase_model(model: Any) -> None:
    """Raise an `InputError` if restored attributes do not agree with each other."""
    for type_ in state_checks.check_type(model.types_, "types_", list):
        state_checks.check_type(type_, "types_", str, type(None))
    n_types = len(model.types_)
    state_checks.require(n_types and len(set(model.types_)) == n_types, "types_")
    check_constraints(model.constraints, model.types_)
    state_checks.require(model.steps_ in ("tokens", "decisions"), "steps_")
    state_checks.check_type(model.output_, "output_", str)
    classes = output_classes(model.output_, model.types_)
    state_checks.require(np.array_equal(classes, model.classes_), "classes_")
    for name in ("threshold_", "inside_weight_"):
        state_checks.check_number(getattr(model, name), name)
    both = (model.open_posteriors_, model.close_posteriors_)
    for columns, posteriors in zip(model.columns_, both, strict=True):
        n_features = model.n_features_in_
        state_checks.require((columns is None) == (model.steps_ == "tokens"), "columns_")
        if columns is not None:
            n_features = state_checks.check_array(
                columns, "columns_", (None,), "i", low=0, high=n_features
            ).size
        state_checks.check_type(posteriors, "posteriors_", StepPosteriors)
        posteriors.check_classifier(n_features, n_types + 2)
