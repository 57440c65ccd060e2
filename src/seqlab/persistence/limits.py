"""Limits of a model file, checked before its content is read.

A small file can describe a large object: compressed zeros, one part that is used a thousand times, lists
inside lists. `load` compares the sizes that a file announces with these limits before it reserves memory.
"""

from __future__ import annotations

from dataclasses import dataclass

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


_WHAT = {
    "n_bytes": "number of bytes",
    "n_header_bytes": "number of bytes in the description",
    "n_nodes": "number of values in the description",
    "depth": "nesting depth",
    "n_members": "number of members",
}
