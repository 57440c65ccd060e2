"""Compiled functions of hidden Markov models, which are imported on first use."""

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from seqlab.utils.lazy import import_on_use

if TYPE_CHECKING:
    from seqlab.models.hmm._kernels.emissions import (
        add_joint_normal,
        add_multinomial,
        add_normal,
        add_normal_rows,
        add_present,
        count_moments,
        count_moments_rows,
        count_present,
        count_products,
        count_table_rows,
        count_values,
        encode_column,
        sum_table_rows,
    )

Floats = NDArray[np.float64]
Columns = NDArray[np.int32]
# Some rows of a CSR matrix: ``indptr`` (a slice, with absolute positions), ``indices`` and ``data``.
CSRRows: TypeAlias = tuple[Columns, Columns, Floats]
MISSING = -1  # code of a missing categorical value

__getattr__, __dir__ = import_on_use(
    __name__,
    {
        "emissions": (
            "add_joint_normal",
            "add_multinomial",
            "add_normal",
            "add_normal_rows",
            "add_present",
            "count_moments",
            "count_moments_rows",
            "count_present",
            "count_products",
            "count_table_rows",
            "count_values",
            "encode_column",
            "sum_table_rows",
        )
    },
)

__all__ = [
    "MISSING",
    "CSRRows",
    "Columns",
    "Floats",
    "add_joint_normal",
    "add_multinomial",
    "add_normal",
    "add_normal_rows",
    "add_present",
    "count_moments",
    "count_moments_rows",
    "count_present",
    "count_products",
    "count_table_rows",
    "count_values",
    "encode_column",
    "sum_table_rows",
]
