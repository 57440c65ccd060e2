"""Readers and writers: column files, CoNLL-U, and the formats of other tools.

``read_*`` gives ``(X, y)``; ``iter_*`` gives the sequences one by one in constant memory. All take
a path (also .gz, .xz, .bz2), an open file or ``"-"`` for standard input, and raise `ReadError` with
file and line. ``write_*`` is the inverse; a path is never left half-written.
"""

from seqlab.data.io._streams import ReadError, WriteError
from seqlab.data.io.conll import iter_conll, read_conll, write_conll
from seqlab.data.io.conllu import CONLLU_FIELDS, iter_conllu, read_conllu, write_conllu

__all__ = [
    "CONLLU_FIELDS",
    "ReadError",
    "WriteError",
    "iter_conll",
    "iter_conllu",
    "read_conll",
    "read_conllu",
    "write_conll",
    "write_conllu",
]
