"""The papers behind seqlab: one module per paper, each a list of experiments without algorithms."""

PAPERS = {
    "classifiers": "seqlab.papers.classifiers_in_inference",
    "few-labels": "seqlab.papers.few_labels",
    "m3n": "seqlab.papers.max_margin_networks",
    "relational": "seqlab.papers.relational_features",
    "secoc": "seqlab.papers.output_codes",
    "stacking": "seqlab.papers.stacked_sequential_learning",
}
"""Short names of the papers and their modules, which define ``TITLE``, ``EXPERIMENTS`` and ``CLAIMS``."""
