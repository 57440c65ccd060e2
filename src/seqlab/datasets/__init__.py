"""Data sets: generators (``make_*``) and real data (``fetch_*``), with a scikit-learn-compatible API.

Real data are searched for in ``$SEQLAB_DATA``, then in the cache, then downloaded; `list_datasets`
describes them.
"""

from seqlab.datasets._store import DatasetError, get_data_home
from seqlab.datasets.addresses import make_addresses
from seqlab.datasets.bayes_ceilings import BayesCeilings, hmm_bayes_ceilings
from seqlab.datasets.catalogue import DatasetInfo, list_datasets
from seqlab.datasets.conll2000 import fetch_conll2000
from seqlab.datasets.email_signatures import fetch_email_signatures
from seqlab.datasets.hmm import make_hmm_sequences
from seqlab.datasets.kasteren import fetch_kasteren
from seqlab.datasets.nettalk import fetch_nettalk
from seqlab.datasets.noise import NoisySequences, swap_steps
from seqlab.datasets.object_use import load_object_use
from seqlab.datasets.ocr_letters import fetch_ocr_letters
from seqlab.datasets.partition import make_partition_sequences
from seqlab.datasets.ptb_sample import fetch_ptb_sample
from seqlab.datasets.ud_english_ewt import fetch_ud_english_ewt
from seqlab.datasets.webkb import fetch_webkb

__all__ = [
    "BayesCeilings",
    "DatasetError",
    "DatasetInfo",
    "NoisySequences",
    "fetch_conll2000",
    "fetch_email_signatures",
    "fetch_kasteren",
    "fetch_nettalk",
    "fetch_ocr_letters",
    "fetch_ptb_sample",
    "fetch_ud_english_ewt",
    "fetch_webkb",
    "get_data_home",
    "hmm_bayes_ceilings",
    "list_datasets",
    "load_object_use",
    "make_addresses",
    "make_hmm_sequences",
    "make_partition_sequences",
    "swap_steps",
]
