"""Which templates could produce the same text, judged by what is before and after their placeholders.

Two templates can collide if one of their beginnings is a prefix of the other and one of their ends is a
suffix of the other. A template file may have thousands of lines, so pairs are not compared one by one:
beginnings are looked up by their prefixes, and the ends that belong to a beginning are sorted by their
reversed text, so that the ends with a common suffix are neighbours.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence


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
        self._lengths = sorted(set(map(len, self._sorted)))
        # Entry k: the last of the neighbours from k on that are known to be in one cluster.
        self._last = _Clusters(len(self._sorted))

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
        for length in self._lengths:
            if length > len(end):
                break
            other = self._numbers.get(end[len(end) - length :][::-1])
            if other is not None:
                clusters.join(number, other)


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
    first: dict[tuple[str, str | None], int] = {}
    ends_of: dict[str, dict[str, int]] = {}
    for number, (begin, end) in enumerate(templates):
        clusters.join(number, first.setdefault((begin, end), number))
        if end is not None:
            ends_of.setdefault(begin, {}).setdefault(end, number)
    index = {begin: _Ends(ends) for begin, ends in ends_of.items()}
    lengths = sorted(set(map(len, index)))
    for (begin, end), number in first.items():
        for ends in _look_up_prefixes(index, lengths, begin):
            if end is None:
                ends.join_suffixes(clusters, number, begin)
            else:
                ends.join_related(clusters, number, end)
    return [clusters.find(number) for number in range(len(templates))]


def _look_up_prefixes(index: dict[str, _Ends], lengths: list[int], text: str) -> Iterator[_Ends]:
    for length in lengths:
        if length > len(text):
            return
        found = index.get(text[:length])
        if found is not None:
            yield found
