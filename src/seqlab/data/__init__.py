"""Sequence data: the internal form, labels, tag schemes, phrases, readers and writers."""

from seqlab.data.atoms import Atom, parse_atoms
from seqlab.data.errors import InputError, NoLegalLabelingError, NumericalError, SeqlabError
from seqlab.data.graphs import Graph, Graphs
from seqlab.data.open_close import (
    open_close_mask,
    open_close_to_phrases,
    phrases_to_open_close,
)
from seqlab.data.phrase_set import PhraseSet
from seqlab.data.phrases import Phrase, check_phrases, sort_phrases
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.data.symbolic import AtomTable, SymbolicSequences
from seqlab.data.tags import (
    SCHEMES,
    SchemeMask,
    convert_tags,
    phrases_to_tags,
    scheme_mask,
    tags_to_phrases,
)

__all__ = [
    "SCHEMES",
    "Atom",
    "AtomTable",
    "Graph",
    "Graphs",
    "InputError",
    "NoLegalLabelingError",
    "NumericalError",
    "Phrase",
    "PhraseSet",
    "SchemeMask",
    "SeqlabError",
    "SequenceBlock",
    "Sequences",
    "SymbolicSequences",
    "check_phrases",
    "convert_tags",
    "open_close_mask",
    "open_close_to_phrases",
    "parse_atoms",
    "phrases_to_open_close",
    "phrases_to_tags",
    "scheme_mask",
    "sort_phrases",
    "tags_to_phrases",
]
