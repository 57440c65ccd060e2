"""Readers and writers: column files, CoNLL-U, and the formats of other tools.

``read_*`` returns ``(X, y)``; ``iter_*`` yields the sequences one by one in constant memory. All accept
a path (also .gz, .xz, .bz2), an open file or ``"-"`` for standard input, and raise `ReadError` with
file and line. ``write_*`` is the inverse; a file is written completely or not at all.
"""

from seqlab.data.io.conll import iter_conll, read_conll, write_conll
from seqlab.data.io.conllu import CONLLU_FIELDS, iter_conllu, read_conllu, write_conllu
from seqlab.data.io.crfsuite import iter_crfsuite, read_crfsuite, write_crfsuite
from seqlab.data.io.frame import iter_frame, read_frame, write_frame
from seqlab.data.io.jsonl import iter_jsonl, read_jsonl, write_jsonl
from seqlab.data.io.logical import iter_logical, read_logical, write_logical
from seqlab.data.io.streams import ReadError, WriteError
from seqlab.data.io.svmlight import iter_svmlight, read_svmlight, write_svmlight

__all__ = [
    "CONLLU_FIELDS",
    "ReadError",
    "WriteError",
    "iter_conll",
    "iter_conllu",
    "iter_crfsuite",
    "iter_frame",
    "iter_jsonl",
    "iter_logical",
    "iter_svmlight",
    "read_conll",
    "read_conllu",
    "read_crfsuite",
    "read_frame",
    "read_jsonl",
    "read_logical",
    "read_svmlight",
    "write_conll",
    "write_conllu",
    "write_crfsuite",
    "write_frame",
    "write_jsonl",
    "write_logical",
    "write_svmlight",
]
