"""An import-linter contract: no room imports another room's private modules.

A room is a top-level package of seqlab; a module is private if a part of its name begins with one underscore.
"""

from __future__ import annotations

from typing import Any

from importlinter import Contract, ContractCheck, output


def is_private(part: str) -> bool:
    """Return whether a part of a module's name marks it as private (`__main__` counts too)."""
    return part.startswith("_")


class PrivateModules(Contract):
    """Imports of private modules stay within a room."""

    type_name = "private_modules"

    def check(self, graph: Any, verbose: bool) -> ContractCheck:
        """Find the imports that cross a border to a private module."""
        broken = []
        for importer in sorted(graph.modules):
            for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                rooms = [name.split(".")[1:2] for name in (importer, imported)]
                if rooms[0] != rooms[1] and any(map(is_private, imported.split("."))):
                    broken.append(f"{importer} -> {imported}")
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print the imports that broke the contract."""
        for line in check.metadata["broken"]:
            output.print_error(f"- {line}")
