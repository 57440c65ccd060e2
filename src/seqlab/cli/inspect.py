"""``seqlab inspect``: the size, the strongest features and the strongest transitions of a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import zip_longest
from typing import Annotated, Any

import typer

from seqlab.cli import _console, _read_options
from seqlab.cli._errors import CommandError
from seqlab.cli._interrupts import begin_work
from seqlab.cli._scheme import detect_scheme
from seqlab.cli._suggestions import suggest
from seqlab.utils.text import show_controls

HELP = """
Show what a model has learned.

The features with the largest positive and negative weights for each label, and the transitions between
labels with the largest weights. A weight of 0.7 doubles the odds. For a model of trees, the importances of
its features; for a model of rules, its rules.

  [bold]seqlab inspect address.seqlab[/bold]
  [bold]seqlab inspect address.seqlab --label B-City --top 20[/bold]
"""


def inspect(
    model: Annotated[str, typer.Argument(help="Model file of seqlab train.")],
    top: Annotated[
        int, typer.Option("--top", "-n", min=1, help="Number of features and transitions to show.")
    ] = 6,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            "-l",
            help="Only this label or phrase type (NP means B-NP and I-NP); may be repeated.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    limit: _read_options.LimitOption = None,
) -> None:
    """Show a model; see `HELP`."""
    from seqlab.cli._files import get_labeler, load_model

    loaded = load_model(model, limit)
    begin_work()
    labels = _find_labels(loaded, label)
    labeler = get_labeler(loaded)
    facts = _collect_facts(loaded, labeler)
    if as_json:
        print(json.dumps(_to_dict(loaded, facts, top, labels), indent=2, ensure_ascii=False))
        return
    console = _console.stdout()
    _print_facts(console, facts)
    if has_trees(labeler):
        print_importances(console, loaded, top)
        return
    if has_weights(labeler):
        print_features(console, loaded, top, labels)
    elif has_rules(labeler):
        print_rules(console, loaded, top, labels)
    else:
        console.print(f"[dim]{type(labeler).__name__} has no linear weights.[/dim]")
    if label is None:
        print_transitions(console, loaded, top)


def has_weights(labeler: Any) -> bool:
    """Whether a labeler has linear weights."""
    return hasattr(labeler, "coef_") or hasattr(getattr(labeler, "estimator_", None), "coef_")


def has_trees(labeler: Any) -> bool:
    """Whether a labeler is a sum of trees, which have importances of features instead of weights."""
    return hasattr(labeler, "previous_label_importance_")


def has_rules(labeler: Any) -> bool:
    """Whether a labeler has rules: conjunctions with weights."""
    return hasattr(labeler, "rules_")


def print_rules(console: Any, model: Any, top: int, labels: list[Any] | None = None) -> None:
    """Print the rules with the largest weights of each label."""
    from seqlab.inspection import top_rules

    table = _console.plain_table()
    table.add_column("label", no_wrap=True)
    table.add_column("rules", overflow="fold")
    table.add_column("", justify="right", min_width=6)
    for label, rules in top_rules(model, top, labels=labels).items():
        shown = f"[bold]{_console.escape_text(label)}[/bold]"
        for rule in rules:
            conditions = " & ".join(rule.conditions) or "always"
            table.add_row(shown, _console.escape_text(conditions), f"{rule.weight:+.3f}")
            shown = ""
        table.add_section()
    console.print(table)


def print_importances(console: Any, model: Any, top: int) -> None:
    """Print the most important features of a model of trees."""
    from seqlab.inspection import top_importances

    table = _console.plain_table()
    table.add_column("feature", no_wrap=True, overflow="ellipsis", max_width=console.width - 20)
    table.add_column("importance", justify="right")
    for one in top_importances(model, top):
        table.add_row(_console.escape_text(one.feature), f"{one.importance:.3f}")
    console.print(table)


def print_features(console: Any, model: Any, top: int, labels: list[Any] | None = None) -> None:
    """Print the strongest features of each label."""
    from seqlab.inspection import top_features
    from seqlab.inspection.terminal import assign_colours, phrase_type

    found = top_features(model, top, labels=labels)
    colours = assign_colours(map(str, model.classes_.tolist()))
    widest = max(len(show_controls(str(one.label))) for one in found)
    max_width = (console.width - widest - 26) // 2
    table = _console.plain_table()
    table.add_column("label", no_wrap=True, min_width=widest)
    table.add_column("positive features", no_wrap=True, overflow="ellipsis", max_width=max_width)
    table.add_column("", justify="right", style="green3", min_width=6)
    table.add_column("negative features", no_wrap=True, overflow="ellipsis", max_width=max_width)
    table.add_column("", justify="right", style="indian_red", min_width=6)
    for one in found:
        style = colours.get(phrase_type(str(one.label)), "")
        name = _console.escape_text(one.label)
        shown = f"[{style} bold]{name}[/]" if name and style else f"[bold]{name}[/bold]"
        rows = _side_by_side(one.positive, one.negative, lambda x: _console.escape_text(x.feature))
        for cells in rows or [[""] * 4]:
            table.add_row(shown, *cells)
            shown = ""
        table.add_section()
    console.print(table)


def print_transitions(console: Any, model: Any, top: int) -> None:
    """Print the transitions with the largest positive and negative weights."""
    from seqlab.inspection import top_transitions

    found = top_transitions(model)
    if not found:
        console.print("[dim]This model has no transitions between labels.[/dim]")
        return
    positive = [one for one in found if one.weight > 0][:top]
    negative = [one for one in reversed(found) if one.weight < 0][:top]
    table = _console.plain_table()
    table.add_column("positive transitions", no_wrap=True)
    table.add_column("", justify="right", style="green3")
    table.add_column("  ")
    table.add_column("negative transitions", no_wrap=True)
    table.add_column("", justify="right", style="indian_red")

    def name(one: Any) -> str:
        return f"{_console.escape_text(one.source)} [dim]→[/dim] {_console.escape_text(one.target)}"

    for cells in _side_by_side(positive, negative, name):
        table.add_row(*cells[:2], "", *cells[2:])
    console.print(table)


def _side_by_side(
    positive: list[Any], negative: list[Any], name: Callable[[Any], str]
) -> list[list[str]]:
    """Rows of a table: name and weight of a positive one, then of a negative one."""
    sides = [[(name(one), f"{one.weight:+.2f}") for one in side] for side in (positive, negative)]
    return [[*left, *right] for left, right in zip_longest(*sides, fillvalue=("", ""))]


def _find_labels(model: Any, wanted: list[str] | None) -> list[Any] | None:
    """Labels of the model with the given names."""
    if not wanted:
        return None
    by_name = {str(label): label for label in model.classes_.tolist()}
    is_scheme = detect_scheme(by_name) is not None
    chosen: list[str] = []
    for name in wanted:
        found = [name] if name in by_name else []
        if not found and is_scheme:
            found = [label for label in by_name if label.partition("-")[2] == name]
        if not found:
            raise CommandError(f"--label: the model has no label {name!r}{suggest(name, by_name)}")
        chosen += [label for label in found if label not in chosen]
    return [by_name[label] for label in chosen]


def _collect_facts(model: Any, labeler: Any) -> dict[str, Any]:
    import numpy as np
    import scipy.sparse as sp

    facts: dict[str, Any] = {"labeler": type(labeler).__name__}
    features = getattr(model, "features_", None)
    if features is not None:
        facts["features"] = type(features).__name__
        if hasattr(features, "templates_"):
            lines = [one for one in features.templates_ if not _is_comment(one)]
            facts["features"] += f" ({_console.format_count(len(lines), 'template')})"
            facts["columns"] = list(map(str, features.column_names_))
    facts["labels"] = len(model.classes_)
    facts["n_features"] = int(getattr(labeler, "n_features_in_", 0))
    coef = getattr(labeler, "coef_", None)
    if coef is not None:
        values = coef.data if sp.issparse(coef) else np.asarray(coef)
        facts["weights"] = int(np.count_nonzero(values))
    if getattr(labeler, "n_iter_", None) is not None:
        facts["iterations"] = int(labeler.n_iter_)
        # The number of rounds of boosting is a choice: nobody expects them to converge.
        facts["converged"] = has_trees(labeler) or bool(getattr(labeler, "converged_", True))
        if getattr(labeler, "best_iteration_", None) is not None:
            facts["best_iteration"] = int(labeler.best_iteration_)
    defaults = type(labeler)().get_params(deep=False)
    given = labeler.get_params(deep=False)
    facts["parameters"] = {
        name: value if isinstance(value, str | int | float | bool | None) else str(value)
        for name, value in given.items()
        if name not in ("verbose", "n_jobs") and repr(value) != repr(defaults.get(name))
    }
    return facts


def _is_comment(template: Any) -> bool:
    return isinstance(template, str) and (not template.strip() or template.startswith("#"))


def _print_facts(console: Any, facts: dict[str, Any]) -> None:
    params = ", ".join(f"{name}={value}" for name, value in facts["parameters"].items())
    size = f"{facts['labels']} labels, {facts['n_features']:,} features"
    if "weights" in facts:
        size += f", {facts['weights']:,} weights"
    rows = {"model": f"{facts['labeler']}, {params or 'default parameters'}", "size": size}
    if "features" in facts:
        columns = ", ".join(facts.get("columns", []))
        rows["features"] = facts["features"] + (f" of {columns}" if columns else "")
    if "iterations" in facts:
        suffix = "" if facts["converged"] else ", not converged"
        if "best_iteration" in facts:  # stopped early, which is not a failure
            suffix = f" (the best is {facts['best_iteration']})"
        rows["trained"] = f"{_console.format_count(facts['iterations'], 'iteration')}{suffix}"
    console.print()
    _console.print_facts(console, rows)


def _to_dict(
    model: Any, facts: dict[str, Any], top: int, labels: list[Any] | None
) -> dict[str, Any]:
    from seqlab.inspection import top_features, top_importances, top_rules, top_transitions

    result: dict[str, Any] = {"model": facts}
    if has_trees(getattr(model, "labeler_", model)):
        result["importances"] = {one.feature: one.importance for one in top_importances(model, top)}
    if has_rules(getattr(model, "labeler_", model)):
        result["rules"] = {
            str(label): [{"if": list(one.conditions), "weight": one.weight} for one in some]
            for label, some in top_rules(model, top, labels=labels).items()
        }
    if has_weights(getattr(model, "labeler_", model)):
        result["features"] = {
            str(one.label): {
                "for": [one._asdict() for one in one.positive],
                "against": [one._asdict() for one in one.negative],
            }
            for one in top_features(model, top, labels=labels)
        }
    result["transitions"] = [
        {"from": str(one.source), "to": str(one.target), "weight": one.weight}
        for one in top_transitions(model)
    ]
    return result
