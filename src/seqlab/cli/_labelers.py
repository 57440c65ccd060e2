"""Create a labeler from its name and from ``name=value`` parameters."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Annotated, Any

import typer

import seqlab
from seqlab.cli._errors import CommandError
from seqlab.cli._suggestions import suggest

SHORT_NAMES = {
    "crf": "LinearChainCRF",
    "perceptron": "StructuredPerceptron",
    "hmm": "HMM",
    "independent": "IndependentLabeler",
}
_NOT_LABELERS = frozenset({"SNoW", "Tagger", "TemperedClassifier"})
JobsOption = Annotated[
    int, typer.Option("--jobs", "-j", help="Number of threads; -1 for all cores.")
]
_CONSTANTS = {"true": True, "false": False, "none": None, "null": None}


def make_labeler(name: str, params: Sequence[str]) -> Any:
    """Create a labeler and check its parameters.

    Parameters
    ----------
    name : str
        A short name, or the class name of any labeler of seqlab; upper and lower case are the same.
    params : sequence of str
        ``name=value`` pairs.
    """
    labeler = _labeler_class(name)()
    kind = type(labeler).__name__
    known = labeler.get_params(deep=True)
    given = dict(_split(pair) for pair in params)
    for key in given:
        if key not in known:
            names = [one for one in known if one not in ("verbose", "n_jobs")]
            raise CommandError(f"--param: {kind} has no parameter {key!r}{suggest(key, names)}")
    labeler.set_params(**given)
    try:
        labeler._validate_params()
    except ValueError as error:
        raise CommandError(f"--param: {error}") from None
    return labeler


def set_supported_params(labeler: Any, **params: Any) -> None:
    """Set those of the given parameters that the labeler has."""
    known = labeler.get_params(deep=False)
    labeler.set_params(**{key: value for key, value in params.items() if key in known})


def labeler_names() -> list[str]:
    """Names of all labelers, short names first."""
    return [*SHORT_NAMES, *(name for name in seqlab.__all__ if _is_labeler(name))]


def parameter_names() -> set[str]:
    """Names of the parameters of all labelers."""
    labelers = (getattr(seqlab, name) for name in seqlab.__all__ if _is_labeler(name))
    return {name for labeler in labelers for name in labeler._get_param_names()}


def parse_value(text: str) -> Any:
    """Parse the value of a parameter: a number, true, false, none, a list, a dict, or else a string.

    Examples
    --------
    >>> [parse_value(text) for text in ("0.5", "10", "true", "lbfgs", "none", "[1, 2]")]
    [0.5, 10, True, 'lbfgs', None, [1, 2]]
    """
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (
        ValueError,
        SyntaxError,
        RecursionError,
        MemoryError,
    ):  # the last two: nested too deeply
        return text


def _labeler_class(name: str) -> Any:
    wanted = SHORT_NAMES.get(name.lower(), name)
    by_lower = {one.lower(): one for one in seqlab.__all__}
    found = by_lower.get(wanted.lower())
    if found is None or not _is_labeler(found):
        raise CommandError(f"--model: no labeler is named {name!r}{suggest(name, labeler_names())}")
    return getattr(seqlab, found)


def _is_labeler(name: str) -> bool:
    if name in _NOT_LABELERS or not name[0].isupper():
        return False
    found = getattr(seqlab, name)
    return hasattr(found, "fit") and hasattr(found, "predict") and hasattr(found, "score")


def _split(pair: str) -> tuple[str, Any]:
    name, equals, value = pair.partition("=")
    if not equals or not name.strip():
        raise CommandError(f"--param: {pair!r} does not have the form name=value")
    parsed = parse_value(value.strip())
    if isinstance(parsed, int) and abs(parsed) >= 2**63:
        raise CommandError(f"--param: {name.strip()} is too large")
    return name.strip(), parsed
