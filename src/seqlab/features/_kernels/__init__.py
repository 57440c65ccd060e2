"""Compiled kernels of the transformers: arrays in, arrays out.

Imported on first use, so that importing a transformer does not import numba.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
