"""Plots of the results of the other benchmarks, from their JSON files."""

from __future__ import annotations

import json

from _common import RESULTS


def load(name):
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def training(results, axes):
    """Plot the objective over seconds."""
    best = min(record["objective"] for record in results.values())
    for name, record in results.items():
        if "trajectory" in record:
            points = [
                (s, 100 * (loss / best - 1)) for s, loss in record["trajectory"] if loss > best
            ]
            axes.plot(*zip(*points, strict=True), label=name, linewidth=1.8)
    axes.axhline(0.1, color="0.6", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", yscale="log", ylim=(0.02, 2000))
    axes.set(
        xlabel="seconds", ylabel="% above the best objective", title="CRF on CoNLL-2000, c2 = 1"
    )
    axes.legend(frameon=False, fontsize=8)


def series(name, rows, axes):
    """Plot the time over the size, with the theoretical slope."""
    sizes = [float(key.rsplit(" ", 1)[1]) for key in rows]
    seconds = [row["seconds"] for row in rows.values()]
    axes.plot(sizes, seconds, "o-", markersize=4, linewidth=1.8)
    power = {"labels": 2, "threads": -1}.get(name, 1)
    guide = [seconds[-1] * (size / sizes[-1]) ** power for size in sizes]
    axes.plot(
        sizes, guide, ":", color="0.5", label={2: "quadratic", 1: "linear", -1: "ideal"}[power]
    )
    axes.set(xscale="log", yscale="log", xlabel=name, ylabel="seconds")
    axes.legend(frameon=False, fontsize=8)


def draw():
    from matplotlib.figure import Figure

    results = load("training")
    if results:
        figure = Figure(figsize=(6, 4), layout="constrained")
        training(results, figure.add_subplot())
        figure.savefig(RESULTS / "training.png", dpi=150)
    results = load("scaling")
    if results:
        figure = Figure(figsize=(8, 6), layout="constrained")
        for axes, (name, rows) in zip(figure.subplots(2, 2).flat, results.items(), strict=True):
            series(name, rows, axes)
        figure.suptitle("One pass of CRF training")
        figure.savefig(RESULTS / "scaling.png", dpi=150)


if __name__ == "__main__":
    draw()
