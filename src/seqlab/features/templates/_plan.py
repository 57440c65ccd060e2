"""The plan of a list of templates: what to read, and which templates share features.

A *view* is a word form of a column, a *read* is a view at a distance, and a *group* holds the templates
whose features must be looked up together because they can produce the same name.

In CRF++ a feature **is** its text: ``U:%x[-1,0]`` and ``U:%x[1,0]`` (no number after the ``U``) form one
bag of words, and ``U01:%x[0,0]/%x[1,0]`` cannot tell ``a/`` + ``b`` from ``a`` + ``/b``. Tuples of codes
must give the same features as text would, so the plan says when a tuple determines the text:

* Templates with the same text around the same views share one table of tuples.
* A value is *ambiguous* if it contains a character of the text *between* two placeholders. Only tuples
  with an ambiguous value can collide; they are rare and are looked up by their text. (If no value of a
  tuple contains such a character, these characters occur in the text only between the placeholders, so
  the text can be read in one way only.)
* Templates that could produce the same text in some other way, such as ``U:%x[0,0]`` beside
  ``U:%x[0,1]``, or with nothing between two placeholders, are always looked up by their text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from seqlab.features.templates._collisions import cluster_templates
from seqlab.features.templates.syntax import Template


class View(NamedTuple):
    """A word form of a column; column -1 is the flag, whose only value is the empty text."""

    column: int
    form: str


class PlannedRead(NamedTuple):
    """A view at a place; `row` and `mode` are those of `syntax.Read`."""

    view: int
    row: int
    mode: str


class Member(NamedTuple):
    """One template of a group: its text and the reads that fill its placeholders."""

    literals: tuple[str, ...]
    reads: tuple[int, ...]


class Group(NamedTuple):
    """Templates that share features.

    Attributes
    ----------
    members : tuple of Member
    views : tuple of int
        The views of the placeholders, the same for all members unless `by_text`.
    separators : frozenset of str
        The characters between placeholders that make a value ambiguous.
    by_text : bool
        Whether every feature is looked up by its text.
    """

    members: tuple[Member, ...]
    views: tuple[int, ...]
    separators: frozenset[str]
    by_text: bool

    @property
    def literals(self) -> tuple[str, ...]:
        """Text around the placeholders, if the group is not looked up by text."""
        return self.members[0].literals


class Plan(NamedTuple):
    """What a list of templates reads and produces.

    Attributes
    ----------
    views : tuple of View
    reads : tuple of PlannedRead
    unary, edge : tuple of Group
        Groups of features of the label, and of the label pair.
    reach : int
        The largest distance of a relative read.
    """

    views: tuple[View, ...]
    reads: tuple[PlannedRead, ...]
    unary: tuple[Group, ...]
    edge: tuple[Group, ...]
    reach: int


def make_plan(templates: Sequence[Template]) -> Plan:
    """Make the plan of templates whose columns are resolved.

    Examples
    --------
    >>> from seqlab.features.templates.syntax import parse_templates
    >>> templates, _ = parse_templates(["U:%x[-1,0]", "U:%x[1,0]", "U1:%x[0,0]/%x[0,1]", "B"])
    >>> plan = make_plan(templates)
    >>> len(plan.views), len(plan.reads), [len(group.members) for group in plan.unary]
    (2, 4, [2, 1])
    """
    views: dict[View, int] = {}
    reads: dict[PlannedRead, int] = {}
    unary: list[Member] = []
    edge: list[Member] = []
    reach = 1
    for template in templates:
        own_reads = []
        for read in template.reads:
            view = views.setdefault(View(int(read.column), read.form), len(views))
            own_reads.append(reads.setdefault(PlannedRead(view, read.row, read.mode), len(reads)))
            if read.mode == "relative":
                reach = max(reach, abs(read.row))
        member = Member(template.literals, tuple(own_reads))
        if template.unary:
            unary.append(member)
        if template.edge and template.reads:  # a bare B is the transition, which needs no feature
            edge.append(member)
    view_of_read = [read.view for read in reads]
    unary_groups, edge_groups = (_make_groups(part, view_of_read) for part in (unary, edge))
    return Plan(tuple(views), tuple(reads), unary_groups, edge_groups, reach)


def _make_groups(members: list[Member], view_of_read: list[int]) -> tuple[Group, ...]:
    """Put templates that could produce the same text into one group, in order of appearance."""
    ends = [(m.literals[0], m.literals[-1] if m.reads else None) for m in members]
    clusters: dict[int, list[Member]] = {}
    for member, cluster in zip(members, cluster_templates(ends), strict=True):
        clusters.setdefault(cluster, []).append(member)
    return tuple(_make_group(cluster, view_of_read) for cluster in clusters.values())


def _make_group(cluster: list[Member], view_of_read: list[int]) -> Group:
    first = cluster[0]
    views = tuple(view_of_read[read] for read in first.reads)
    inner = first.literals[1:-1]
    are_alike = all(
        member.literals == first.literals
        and tuple(view_of_read[read] for read in member.reads) == views
        for member in cluster
    )
    by_text = not are_alike or any(separator == "" for separator in inner)
    return Group(tuple(cluster), views, frozenset("".join(inner)), by_text)
