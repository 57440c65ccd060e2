"""Named data: generators (``make_*``) and real sets (``fetch_*``) in scikit-learn's manner.

A fetched set is looked for in ``$SEQLAB_DATA``, then in the cache, then downloaded.
"""

from seqlab.datasets._store import DatasetError, get_data_home
from seqlab.datasets.conll2000 import fetch_conll2000
from seqlab.datasets.hmm import BayesCeilings, hmm_bayes_ceilings, make_hmm_sequences
from seqlab.datasets.partition import make_partition_sequences
from seqlab.datasets.ud_english_ewt import fetch_ud_english_ewt

__all__ = [
    "BayesCeilings",
    "DatasetError",
    "fetch_conll2000",
    "fetch_ud_english_ewt",
    "get_data_home",
    "hmm_bayes_ceilings",
    "make_hmm_sequences",
    "make_partition_sequences",
]
