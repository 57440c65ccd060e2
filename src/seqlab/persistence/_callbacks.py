"""Callbacks are not saved: they belong to a training run, and a model file must not contain code."""

from __future__ import annotations

from copy import copy
from typing import Any

from sklearn.base import BaseEstimator


def without_callbacks(value: Any) -> Any:
    """Return a model without the callbacks of its labelers; the model itself if there are none."""
    if isinstance(value, BaseEstimator):
        parts = {name: without_callbacks(part) for name, part in vars(value).items()}
        if type(value).__module__.startswith("seqlab.") and callable(parts.get("callback")):
            parts["callback"] = None
        changed = {name: part for name, part in parts.items() if part is not vars(value)[name]}
        if not changed:
            return value
        model = copy(value)
        vars(model).update(changed)
        return model
    if type(value) is dict:
        items = {key: without_callbacks(part) for key, part in value.items()}
        return items if any(items[key] is not value[key] for key in items) else value
    if type(value) in (list, tuple):
        inner = type(value)(without_callbacks(part) for part in value)
        return inner if any(a is not b for a, b in zip(inner, value, strict=True)) else value
    return value
