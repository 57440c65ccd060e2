"""Labelers by name, and their parameters from ``name=value``."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import seqlab
from seqlab.cli._errors import CommandError
from seqlab.cli._nearest import nearest

SHORT_NAMES = {
    "crf": "LinearChainCRF",
    "perceptron": "StructuredPerceptron",
    "hmm": "HMM",
    "independent": "IndependentLabeler",
}
_NOT_LABELERS = frozenset({"SNoW", "Tagger", "TemperedClassifier"})
_CONSTANTS = {"true": True, "false": False, "none": None, "null": None}


def make_labeler(name: str, params: Sequence[str]) -> Any:
    """A labeler with the given parameters, checked.

    Parameters
    ----------
    name : str
        A short name, or the name of any labeler of seqlab in any case.
    params : sequence of str
        ``name=value`` pairs.
    """
    labeler = _labeler_class(name)()
    shown = type(labeler).__name__
    known = labeler.get_params(deep=True)
    given = dict(_split(pair) for pair in params)
    for key in given:
        if key not in known:
            names = [one for one in known if one not in ("verbose", "n_jobs")]
            raise CommandError(f"--param: {shown} has no parameter {key!r}{nearest(key, names)}")
    labeler.set_params(**given)
    try:
        labeler._validate_params()
    except ValueError as error:
        raise CommandError(f"--param: {error}") from None
    return labeler


def set_if_known(labeler: Any, **params: Any) -> None:
    """Set those of the parameters that the labeler has."""
    known = labeler.get_params(deep=False)
    labeler.set_params(**{key: value for key, value in params.items() if key in known})


def labeler_names() -> list[str]:
    """Names of all labelers, the short ones first."""
    return [*SHORT_NAMES, *(name for name in seqlab.__all__ if _is_labeler(name))]


def parse_value(text: str) -> Any:
    """A parameter's value: a number, true, false, none, a list, a dict, else the text itself.

    Examples
    --------
    >>> [parse_value(text) for text in ("0.5", "10", "true", "lbfgs", "none", "[1, 2]")]
    [0.5, 10, True, 'lbfgs', None, [1, 2]]
    """
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _labeler_class(name: str) -> Any:
    wanted = SHORT_NAMES.get(name.lower(), name)
    by_lower = {one.lower(): one for one in seqlab.__all__}
    found = by_lower.get(wanted.lower())
    if found is None or not _is_labeler(found):
        raise CommandError(f"--model: no labeler {name!r}{nearest(name, labeler_names())}")
    return getattr(seqlab, found)


def _is_labeler(name: str) -> bool:
    if name in _NOT_LABELERS or not name[0].isupper():
        return False
    found = getattr(seqlab, name)
    return hasattr(found, "fit") and hasattr(found, "predict") and hasattr(found, "score")


def _split(pair: str) -> tuple[str, Any]:
    name, equals, value = pair.partition("=")
    if not equals or not name.strip():
        raise CommandError(f"--param: {pair!r} is not name=value")
    return name.strip(), parse_value(value.strip())
