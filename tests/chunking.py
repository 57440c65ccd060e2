"""The attributes of CRFsuite's chunking tutorial as strings: shared input of seqlab and other libraries."""

from __future__ import annotations

_SINGLES = [(column, offset) for column in (0, 1) for offset in (-2, -1, 0, 1, 2)]
TEMPLATES = (
    *[((column, offset),) for column, offset in _SINGLES],
    ((0, -1), (0, 0)),
    ((0, 0), (0, 1)),
    ((1, -2), (1, -1)),
    ((1, -1), (1, 0)),
    ((1, 0), (1, 1)),
    ((1, 1), (1, 2)),
    ((1, -2), (1, -1), (1, 0)),
    ((1, -1), (1, 0), (1, 1)),
    ((1, 0), (1, 1), (1, 2)),
)


def chunking_attributes(sentence):
    """Bags of attributes of one sentence of (word, pos) tokens, without those that reach beyond its ends."""
    n = len(sentence)
    steps = [[] for _ in sentence]
    for template in TEMPLATES:
        name = "|".join(f"{'w' if column == 0 else 'pos'}[{offset}]" for column, offset in template)
        low = min(offset for _, offset in template)
        high = max(offset for _, offset in template)
        for t in range(max(0, -low), min(n, n - high)):
            value = "|".join(sentence[t + offset][column] for column, offset in template)
            steps[t].append(f"{name}={value}")
    steps[0].append("__BOS__")
    steps[-1].append("__EOS__")
    return steps
