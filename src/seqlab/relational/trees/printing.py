"""Regression trees as text, with their tests as queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqlab.learning.boosting import TreeEnsemble

_MAX_NAMES = 6


def format_tree(trees: TreeEnsemble, number: int, tests: Sequence[str], classes: Any) -> str:
    """Return one tree as indented text.

    Parameters
    ----------
    trees : TreeEnsemble
    number : int
        Of the tree.
    tests : sequence of str
        Names of the features of the trees.
    classes : array of labels
    """
    base = int(trees.tree_offsets[number])
    n_columns = trees.n_labels + 1
    sets = np.unpackbits(trees.label_sets, axis=1)[:, :n_columns].astype(np.bool_)
    lines: list[str] = []

    def previous_labels(node: int) -> Any:
        """Return the previous labels that reach the leaves below a node."""
        if trees.feature[node] == -1:
            at = trees.label_set[node]
            return sets[at] if at >= 0 else np.ones(n_columns, dtype=np.bool_)
        left = base + int(trees.child[node])
        return previous_labels(left) | previous_labels(left + 1)

    def write(node: int, head: str, indent: str) -> None:
        feature = int(trees.feature[node])
        if feature == -1:
            lines.append(f"{head}{trees.value[node]:+.3f}")
            return
        left = base + int(trees.child[node])
        if feature == -2:
            test = f"previous label in {_format_labels(previous_labels(left), classes)}"
            branches = (left, left + 1)
        else:
            test, branches = tests[feature], (left + 1, left)
            if trees.threshold[node] != 0.5:
                test += f" > {trees.threshold[node]:g}"
        lines.append(f"{head}{test}?")
        write(branches[0], f"{indent}  yes: ", indent + "  ")
        write(branches[1], f"{indent}  no:  ", indent + "  ")

    write(base, "", "")
    return "\n".join(lines)


def _format_labels(member: Any, classes: Any) -> str:
    names = [str(label) for label in classes[member[:-1]]]
    if member[-1]:
        names.append("(beginning)")
    if len(names) > _MAX_NAMES:
        names = [*names[:_MAX_NAMES], f"{len(names) - _MAX_NAMES} more"]
    return "{" + ", ".join(names) + "}"
