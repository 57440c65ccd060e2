"""The founding results: one module per paper, each a list of experiments; no algorithm lives here."""

PAPERS = {
    "classifiers": "seqlab.papers.classifiers_in_inference",
    "few-labels": "seqlab.papers.few_labels",
    "stacking": "seqlab.papers.stacked_sequential_learning",
}
"""Short names of the papers and their modules, each with ``TITLE``, ``EXPERIMENTS`` and ``CLAIMS``."""
