"""Bracketed trees, and the two phrase columns derived from them.

* Base NP: an NP node with no overt NP inside; in a possessive ``(NP (NP X 's) Y)``, X is one chunk
  and ``'s Y`` the next, as in Ramshaw & Marcus (1995).
* SV, after Munoz et al. (1999): a phrase that begins with the subject and ends with the first verb
  that is not a modal. It begins at the first token of an overt NP-SBJ with a VP sister to its right
  under S, SINV, SQ or SBAR(Q), and ends at the first later token tagged VB* directly under a VP;
  subjects inside an earlier phrase are ignored.

Traces (-NONE-) are not tokens.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_CLAUSES = {"S", "SINV", "SQ", "SBAR", "SBARQ"}


class Node(NamedTuple):
    """A node of a tree over the tokens ``start:stop``; a leaf has a word."""

    label: str
    children: list[Node]
    word: str | None
    start: int
    stop: int

    @property
    def kind(self) -> str:
        """The label without function tags and indices."""
        return self.label if self.label[:1] == "-" else re.split("[-=]", self.label, maxsplit=1)[0]


def parse_trees(text: str) -> list[Node]:
    """Parse all trees of a bracketed text; an unlabelled top bracket is removed."""
    trees: list[Node] = []
    stack: list[tuple[str, int, list[Node]]] = []
    position = 0
    for bracket, label, word in re.findall(r"([()])\s*([^\s()]*)\s*([^\s()]*)", text):
        if bracket == "(":
            if not stack:
                position = 0
            if word:
                # A leaf; the next bracket closes it.
                overt = label != "-NONE-"
                stack.append((label, position, [Node(label, [], word, position, position + overt)]))
                position += overt
            else:
                stack.append((label, position, []))
            continue
        label, start, children = stack.pop()
        leaf = len(children) == 1 and children[0].word is not None and children[0].label == label
        node = children[0] if leaf else Node(label, children, None, start, position)
        if stack:
            stack[-1][2].append(node)
        else:
            trees.extend([node] if node.label else node.children)
    if stack:
        raise ValueError("unbalanced brackets")
    return trees


def tokens(node: Node) -> list[tuple[str, str]]:
    """Word and part of speech of the overt leaves."""
    if node.word is not None:
        return [(node.word, node.label)] if node.stop > node.start else []
    return [token for child in node.children for token in tokens(child)]


def base_noun_phrases(tree: Node) -> list[tuple[int, int]]:
    """Find the spans of the base noun phrases."""
    spans: list[tuple[int, int]] = []
    _collect_noun_phrases(tree, spans)
    return sorted(spans)


def _collect_noun_phrases(node: Node, spans: list[tuple[int, int]], parent: str = "") -> None:
    for child in node.children:
        _collect_noun_phrases(child, spans, node.kind)
    if node.kind != "NP" or node.stop == node.start:
        return
    if not any(_has_np(child) for child in node.children):
        # In a possessive inside another NP, the final 's belongs to the next phrase.
        mark = _possessive_mark(node) if parent == "NP" else None
        spans.append((node.start, node.stop if mark is None else mark))
        return
    overt = [child for child in node.children if child.stop > child.start]
    mark = _possessive_mark(overt[0])
    if mark is not None:
        stop = overt[0].stop
        for sister in overt[1:]:
            if _has_np(sister):
                break
            stop = sister.stop
        spans.append((mark, stop))


def _possessive_mark(node: Node) -> int | None:
    """Position of the final 's of an NP with other tokens before it, else None."""
    overt = [child for child in node.children if child.stop > child.start]
    if node.kind == "NP" and len(overt) > 1 and overt[-1].label == "POS":
        return overt[-1].start
    return None


def _has_np(node: Node) -> bool:
    if node.stop == node.start:
        return False
    return node.kind == "NP" or any(_has_np(child) for child in node.children)


def subject_verb_phrases(tree: Node) -> list[tuple[int, int]]:
    """Find the spans of the subject-verb phrases."""
    starts: list[int] = []
    verbs: list[int] = []
    _collect_subjects(tree, starts, verbs)
    spans: list[tuple[int, int]] = []
    for start in sorted(set(starts)):
        if spans and start < spans[-1][1]:
            continue
        end = min((verb for verb in verbs if verb > start), default=None)
        if end is not None:
            spans.append((start, end + 1))
    return spans


def _collect_subjects(node: Node, starts: list[int], verbs: list[int]) -> None:
    for k, child in enumerate(node.children):
        subject = child.kind == "NP" and "SBJ" in re.split("[-=]", child.label)
        has_verb = any(sister.kind == "VP" for sister in node.children[k + 1 :])
        if subject and has_verb and child.stop > child.start and node.kind in _CLAUSES:
            starts.append(child.start)
        if node.kind == "VP" and child.word is not None and child.label.startswith("VB"):
            verbs.append(child.start)
        _collect_subjects(child, starts, verbs)


def column_text(documents: dict[str, str]) -> bytes:
    """Convert bracketed documents, sorted by name, to a column file ``word POS NP-tag SV-tag``."""
    parts = []
    for name in sorted(documents):
        parts.append(f"-DOCSTART- {name}\n\n")
        for tree in parse_trees(documents[name]):
            words = tokens(tree)
            noun = _iob2(base_noun_phrases(tree), "NP", len(words))
            verb = _iob2(subject_verb_phrases(tree), "SV", len(words))
            rows = zip(words, noun, verb, strict=True)
            parts.append("".join(f"{w} {pos} {a} {b}\n" for (w, pos), a, b in rows) + "\n")
    return "".join(parts).encode("utf-8")


def _iob2(spans: list[tuple[int, int]], kind: str, n_tokens: int) -> list[str]:
    tags = ["O"] * n_tokens
    for start, stop in spans:
        tags[start:stop] = [f"B-{kind}"] + [f"I-{kind}"] * (stop - start - 1)
    return tags
