"""Inference: from scores to probabilities and labelings.

Pure functions on `ChainScores`, the scores of many sequences at once, and on `GraphScores`. ``pairwise[i,
j]`` is from label ``i`` to label ``j``; time comes first, labels last; forbidden is ``-inf``; ties go to
the lowest index.
"""

from typing import TYPE_CHECKING

from seqlab.inference.results import Labelings, Marginals, PairMarginals, TransitionCounts
from seqlab.inference.scores import ChainScores, Mask
from seqlab.utils.lazy import import_on_use

if TYPE_CHECKING:
    from seqlab.inference.beam_search import beam, beam_marginals, beam_pair_marginals
    from seqlab.inference.chain import (
        expected_transitions,
        log_partition,
        loss_augmented,
        marginals,
        max_marginals,
        pair_marginals,
        path_scores,
        viterbi,
    )
    from seqlab.inference.conditionals import ConditionalLosses, conditional_losses
    from seqlab.inference.error_counts import error_count_scores
    from seqlab.inference.graphs import (
        GraphInference,
        GraphLayout,
        GraphMarginals,
        GraphScores,
        RelaxedLabelings,
    )
    from seqlab.inference.k_best import kbest
    from seqlab.inference.phrases.constraints import (
        CountLimit,
        Covered,
        LengthLimit,
        Requires,
        TypeOrder,
    )
    from seqlab.inference.phrases.costs import PhraseCandidates, PhraseCosts
    from seqlab.inference.phrases.integer_program import constrained_phrases
    from seqlab.inference.phrases.shortest_path import PhraseSets, best_phrases
    from seqlab.inference.sampling import sample

__getattr__, __dir__ = import_on_use(
    __name__,
    {
        "beam_search": ("beam", "beam_marginals", "beam_pair_marginals"),
        "chain": (
            "expected_transitions",
            "log_partition",
            "loss_augmented",
            "marginals",
            "max_marginals",
            "pair_marginals",
            "path_scores",
            "viterbi",
        ),
        "conditionals": ("ConditionalLosses", "conditional_losses"),
        "error_counts": ("error_count_scores",),
        "graphs": (
            "GraphInference",
            "GraphLayout",
            "GraphMarginals",
            "GraphScores",
            "RelaxedLabelings",
        ),
        "k_best": ("kbest",),
        "phrases.constraints": ("CountLimit", "Covered", "LengthLimit", "Requires", "TypeOrder"),
        "phrases.costs": ("PhraseCandidates", "PhraseCosts"),
        "phrases.integer_program": ("constrained_phrases",),
        "phrases.shortest_path": ("PhraseSets", "best_phrases"),
        "sampling": ("sample",),
    },
)

__all__ = [
    "ChainScores",
    "ConditionalLosses",
    "CountLimit",
    "Covered",
    "GraphInference",
    "GraphLayout",
    "GraphMarginals",
    "GraphScores",
    "Labelings",
    "LengthLimit",
    "Marginals",
    "Mask",
    "PairMarginals",
    "PhraseCandidates",
    "PhraseCosts",
    "PhraseSets",
    "RelaxedLabelings",
    "Requires",
    "TransitionCounts",
    "TypeOrder",
    "beam",
    "beam_marginals",
    "beam_pair_marginals",
    "best_phrases",
    "conditional_losses",
    "constrained_phrases",
    "error_count_scores",
    "expected_transitions",
    "kbest",
    "log_partition",
    "loss_augmented",
    "marginals",
    "max_marginals",
    "pair_marginals",
    "path_scores",
    "sample",
    "viterbi",
]
