"""Limits of a model file, checked before its content is read.

A small file can describe a large object: compressed zeros, one part that is used a thousand times, lists
inside lists. `load` compares the sizes that a file announces with these limits before it reserves memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace

from seqlab.data.errors import InputError
from seqlab.persistence.errors import ModelFileError


@dataclass(frozen=True)
class Limits:
    """What `load` accepts at most.

    The defaults are far above what models need. Raise one of them for a file that you know.

    Parameters
    ----------
    n_bytes : int, default=2**32
        Size of the file, and total size of its parts after decompression.
    n_header_bytes : int, default=2**24
        Size of the description of the model (JSON), which holds everything but the arrays.
    n_nodes : int, default=500_000
        Number of values in the description. A part that is used several times counts each time.
    depth : int, default=100
        Nesting of lists, dicts and objects.
    n_members : int, default=20_000
        Number of members of the zip archive.

    Examples
    --------
    >>> from seqlab.persistence import Limits
    >>> Limits(n_bytes=2**36).n_bytes
    68719476736
    """

    n_bytes: int = 2**32
    n_header_bytes: int = 2**24
    n_nodes: int = 500_000
    depth: int = 100
    n_members: int = 20_000

    def check(self, name: str, value: int) -> None:
        """Raise a `ModelFileError` if a value is above the limit of that name."""
        limit = getattr(self, name)
        if value > limit:
            raise ModelFileError(
                f"it is beyond a limit: {_WHAT[name]} {value:,}, but at most {limit:,} are allowed; if you "
                f"know where the file comes from, pass limits=Limits({name}=...) of seqlab.persistence"
            )


@dataclass(frozen=True)
class MeasuredLimits(Limits):
    """Limits that nothing but the depth exceeds, and that remember what was compared with them.

    Attributes
    ----------
    largest : dict of str to int
        The largest value of each limit.
    """

    n_bytes: int = 2**62
    n_header_bytes: int = 2**62
    n_nodes: int = 2**62
    n_members: int = 2**62
    largest: dict[str, int] = field(default_factory=dict)

    def check(self, name: str, value: int) -> None:
        """Remember a value."""
        super().check(name, value)
        self.largest[name] = max(value, self.largest.get(name, 0))

    def beyond(self, limits: Limits) -> dict[str, int]:
        """Return the values that are above the given limits."""
        return {name: n for name, n in self.largest.items() if n > getattr(limits, name)}


def parse_limits(settings: Iterable[str]) -> Limits:
    """Return the limits that texts such as ``"n_nodes=1000000"`` set.

    Examples
    --------
    >>> from seqlab.persistence.limits import parse_limits
    >>> parse_limits(["n_nodes=1000000"]).n_nodes
    1000000
    """
    names = [one.name for one in fields(Limits)]
    limits = Limits()
    for setting in settings:
        name, _, text = setting.partition("=")
        name, text = name.strip(), text.strip().replace("_", "").replace(",", "")
        if name not in names:
            raise InputError(f"{setting!r:.60} does not name a limit: {', '.join(names)}")
        if not (text.isascii() and text.isdigit() and 0 < len(text) < 19):
            raise InputError(f"{setting!r:.60} needs a whole number, for example {name}=1000000")
        limits = replace(limits, **{name: int(text)})
    return limits


_WHAT = {
    "n_bytes": "number of bytes",
    "n_header_bytes": "number of bytes in the description",
    "n_nodes": "number of values in the description",
    "depth": "nesting depth",
    "n_members": "number of members",
}
