"""Predefined templates: a default for text, and the chunking templates of CRF++ and CRFsuite."""

from __future__ import annotations

from typing import Any

# Distances whose words, and whose parts of speech, make a feature of both chunking sets.
_WORD_WINDOWS = ((-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1))
_TAG_WINDOWS = (
    *((-2,), (-1,), (0,), (1,), (2,)),
    *((-2, -1), (-1, 0), (0, 1), (1, 2)),
    *((-2, -1, 0), (-1, 0, 1), (0, 1, 2)),
)


def default_templates(n_columns: int) -> list[Any]:
    """Return a good default for text whose first column is the word.

    The word and its neighbours, lower case, shape, case, digits, punctuation, prefixes and suffixes of
    one to four characters, word bigrams, flags of the first and last step; for every further column (for
    example a part of speech) a window of five with its bigrams and trigrams, and the pair with the word.

    Parameters
    ----------
    n_columns : int
        Number of columns of a token.

    Examples
    --------
    >>> default_templates(1)[:3]
    [(-2, 0), (-1, 0), (0, 0)]
    """
    templates: list[Any] = [_spec(rows, 0) for rows in _WORD_WINDOWS]
    templates += [(row, 0, "lower") for row in (-1, 0, 1)]
    templates += [(0, 0, f"prefix{n}") for n in (1, 2, 3, 4)]
    templates += [(0, 0, f"suffix{n}") for n in (1, 2, 3, 4)]
    templates += [(0, 0, "shape"), (0, 0, "digits"), (0, 0, "punctuation")]
    templates += [(row, 0, "short_shape") for row in (-1, 0, 1)]
    templates += [(row, 0, "case") for row in (-1, 0, 1)]
    templates += [[(row, 0, "short_shape"), (row + 1, 0, "short_shape")] for row in (-1, 0)]
    for column in range(1, n_columns):
        templates += [_spec(rows, column) for rows in _TAG_WINDOWS]
        templates.append([(0, 0), (0, column)])
    return [*templates, "__BOS__", "__EOS__", "B"]


def crfpp_chunking_templates() -> list[str]:
    """Return the chunking template that comes with CRF++: 19 unigram lines and ``B``.

    Examples
    --------
    >>> crfpp_chunking_templates()[5], crfpp_chunking_templates()[-1]
    ('U05:%x[-1,0]/%x[0,0]', 'B')
    """
    lines = [_line(f"U{n:02d}", rows, 0) for n, rows in enumerate(_WORD_WINDOWS)]
    # CRF++ numbers them U10-U18 and, for the trigrams, U20-U22.
    lines += [_line(f"U{n + 10 + (n > 8):02d}", rows, 1) for n, rows in enumerate(_TAG_WINDOWS)]
    return [*lines, "B"]


def crfsuite_chunking_templates() -> list[Any]:
    """Return the attributes of CRFsuite's chunking tutorial, for columns ``w`` and ``pos``.

    Examples
    --------
    >>> crfsuite_chunking_templates()[5]
    [(-1, 'w'), (0, 'w')]
    """
    words: list[Any] = [_spec(rows, "w") for rows in _WORD_WINDOWS]
    return [*words, *(_spec(rows, "pos") for rows in _TAG_WINDOWS), "__BOS__", "__EOS__", "B"]


def _spec(rows: tuple[int, ...], column: int | str) -> Any:
    reads = [(row, column) for row in rows]
    return reads[0] if len(reads) == 1 else reads


def _line(name: str, rows: tuple[int, ...], column: int) -> str:
    return f"{name}:" + "/".join(f"%x[{row},{column}]" for row in rows)
