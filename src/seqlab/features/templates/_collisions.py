"""Which templates could produce the same text, judged by what is before and after their placeholders.

Two templates can collide if one of their beginnings is a prefix of the other and one of their ends is a
suffix of the other. A template file may have thousands of lines, so pairs are not compared one by one:
beginnings are sorted, so that the prefixes of one are found on the way to it, and the ends that belong to a
beginning are sorted by their reversed text, so that the ends with a common suffix are neighbours.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

# If more beginnings than this are prefixes of each other, their ends are not compared any more: the templates
# are put into one cluster, which is correct for any set of templates but slower to look up.
MAX_NESTED = 64


class _Clusters:
    """Disjoint sets of the numbers 0, 1, ..., named by their smallest member."""

    def __init__(self, size: int) -> None:
        self._parents = list(range(size))

    def find(self, item: int) -> int:
        """Return the name of the set of an item."""
        parents = self._parents
        while parents[item] != item:
            parents[item] = item = parents[parents[item]]
        return item

    def join(self, a: int, b: int) -> None:
        """Unite the sets of two items."""
        a, b = self.find(a), self.find(b)
        self._parents[max(a, b)] = min(a, b)


class _Ends:
    """The ends of the templates with one beginning."""

    def __init__(self, templates: dict[str, int]) -> None:
        # Reversed, a suffix is a prefix.
        self._numbers = {end[::-1]: number for end, number in templates.items()}
        self._sorted = sorted(self._numbers)
        # The shortest prefix of each. Everything between it and the end is in one cluster with both.
        self._roots: list[str] = []
        for text in self._sorted:
            is_root = not self._roots or not text.startswith(self._roots[-1])
            self._roots.append(text if is_root else self._roots[-1])
        # Entry k: the last of the neighbours from k on that are known to be in one cluster.
        self._last = _Clusters(len(self._sorted))
        self.is_united = (
            False  # whether these templates and all with a prefix as beginning are in one cluster
        )

    def join_related(self, clusters: _Clusters, number: int, end: str) -> None:
        """Unite a template with those whose end is a suffix of its end, or has its end as a suffix."""
        self.join_suffixes(clusters, number, end)
        text = end[::-1]
        # Counted from the back, because the name of a set is its smallest member.
        size = len(self._sorted)
        at = bisect_left(self._sorted, text)
        previous = -1
        while at < size and self._sorted[at].startswith(text):
            clusters.join(number, self._numbers[self._sorted[at]])
            if previous >= 0:
                self._last.join(size - 1 - previous, size - 1 - at)
            previous = size - 1 - self._last.find(size - 1 - at)
            at = previous + 1

    def join_suffixes(self, clusters: _Clusters, number: int, end: str) -> None:
        """Unite a template with those whose end is a suffix of a text."""
        text = end[::-1]
        at = bisect_left(self._sorted, text)
        if at == len(self._sorted) or self._sorted[at] != text:
            at -= 1
        # A prefix of the text in the list is a prefix of the last one before the text, too.
        if at >= 0 and text.startswith(self._roots[at]):
            clusters.join(number, self._numbers[self._roots[at]])

    def unite(self, clusters: _Clusters) -> int:
        """Unite all templates, and return one of them."""
        first, *others = self._numbers.values()
        for other in others:
            clusters.join(first, other)
        return first


def cluster_templates(templates: Sequence[tuple[str, str | None]]) -> list[int]:
    """Return the cluster of each template: the number of the first template in it.

    Parameters
    ----------
    templates : sequence of (str, str or None)
        The text before the first placeholder and after the last one; the whole text and None if there is
        no placeholder.

    Examples
    --------
    >>> cluster_templates([("U:", ""), ("U1:", ""), ("U:", "/x"), ("U1:y", None), ("B", "")])
    [0, 1, 0, 1, 4]
    """
    clusters = _Clusters(len(templates))
    texts: dict[str, int] = {}
    ends_of: dict[str, dict[str, int]] = {}
    for number, (begin, end) in enumerate(templates):
        same = texts if end is None else ends_of.setdefault(begin, {})
        clusters.join(number, same.setdefault(begin if end is None else end, number))
    for begin, nested in _nested_beginnings(ends_of, sorted({*ends_of, *texts})):
        if len(nested) > MAX_NESTED:
            number = _unite_nested(clusters, nested)
            clusters.join(number, texts.get(begin, number))
            continue
        for ends in nested:
            if begin in texts:
                ends.join_suffixes(clusters, texts[begin], begin)
            for end, number in ends_of.get(begin, {}).items():
                ends.join_related(clusters, number, end)
    return [clusters.find(number) for number in range(len(templates))]


def _nested_beginnings(
    ends_of: dict[str, dict[str, int]], begins: list[str]
) -> Iterator[tuple[str, list[_Ends]]]:
    """Yield each of the sorted beginnings, and the ends of those that are its prefixes (or equal to it)."""
    prefixes: list[str] = []
    nested: list[_Ends] = []
    for begin in begins:
        while prefixes and not begin.startswith(prefixes[-1]):
            prefixes.pop()
            nested.pop()
        if begin in ends_of:
            prefixes.append(begin)
            nested.append(_Ends(ends_of[begin]))
        yield begin, nested


def _unite_nested(clusters: _Clusters, nested: list[_Ends]) -> int:
    """Unite the templates of nested beginnings, and return one of them."""
    n_done = len(nested)
    while n_done and not nested[n_done - 1].is_united:
        n_done -= 1
    number = nested[max(n_done - 1, 0)].unite(clusters)
    for ends in nested[n_done:]:
        clusters.join(number, ends.unite(clusters))
        ends.is_united = True
    return number
