"""Weights with feature names, label strips for the terminal, and plots.

matplotlib is imported only when something is plotted.
"""

from seqlab.inspection.displays import ConfusionDisplay, HistoryDisplay, TransitionDisplay
from seqlab.inspection.rules import top_rules
from seqlab.inspection.strips import StripDisplay
from seqlab.inspection.subsequences import SubsequenceReason, explain_subsequences
from seqlab.inspection.terminal import LabelStrip
from seqlab.inspection.weights import (
    FeatureImportance,
    FeatureWeight,
    LabelFeatures,
    TransitionWeight,
    feature_names,
    label_order,
    to_frame,
    top_features,
    top_importances,
    top_transitions,
    transition_matrix,
)

__all__ = [
    "ConfusionDisplay",
    "FeatureImportance",
    "FeatureWeight",
    "HistoryDisplay",
    "LabelFeatures",
    "LabelStrip",
    "StripDisplay",
    "SubsequenceReason",
    "TransitionDisplay",
    "TransitionWeight",
    "explain_subsequences",
    "feature_names",
    "label_order",
    "to_frame",
    "top_features",
    "top_importances",
    "top_rules",
    "top_transitions",
    "transition_matrix",
]
