"""Plots of the results of the other benchmarks, from their JSON files.

``output_codes.json`` is written by ``seqlab reproduce secoc --json FILE --resume``, ``relational.json`` by
``seqlab reproduce relational``. The pictures of the guide are written to ``docs/assets``.
"""

from __future__ import annotations

import json

from _common import RESULTS, ROOT

ASSETS = ROOT / "docs" / "assets"


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


# Families of the experiments `seqlab reproduce secoc` in the order of their points: label, kinds.
FAMILIES = {
    "output code, boosted trees": ("gtb", ("iid", "i", "c1", "c2", "c3", "c5", "c9", "c11")),
    "output code, perceptrons": (
        "vp",
        ("iid", "i", "c1", "c5", "c11", "c19", "c50", "call"),
    ),
    "all labels, perceptron": ("full", ("vp-beam-1", "vp-beam-5", "vp-beam-20", "vp")),
    "all labels, boosted trees": ("full", ("gtb-beam-1", "gtb-beam-5", "gtb-beam-20")),
    "all labels, CRF": ("full", ("crf",)),
}
MARKS = {"vp": "exact", "crf": "exact", "call": "all"}


def accuracy_of_seconds(results, window, axes):
    """Plot the accuracy on NETtalk against the CPU seconds of training.

    For the first seed: some experiments have no other, and the words of seeds differ in difficulty.
    """
    found = {one["name"]: one["values"][0] for one in results["experiments"]}
    for label, (family, kinds) in FAMILIES.items():
        names = {kind: f"nettalk/w{window}/{family}/{kind}" for kind in kinds}
        points = [
            (found[f"{name}/cpu"], found[name], kind)
            for kind, name in names.items()
            if {name, f"{name}/cpu"} <= found.keys()
        ]
        if not points:
            continue
        seconds, accuracy, _ = zip(*points, strict=True)
        [line] = axes.plot(seconds, accuracy, "o-", markersize=4, linewidth=1.2, label=label)
        for x, y, kind in points:
            text = MARKS.get(kind, kind.rsplit("-", 1)[-1])
            axes.annotate(
                text, (x, y), (3, 3), textcoords="offset points", fontsize=7, color=line.get_color()
            )
    axes.set(xscale="log", xlabel="CPU seconds of training", title=f"window of {window}")
    axes.grid(alpha=0.3)


def against_labels(results, figure):
    """Plot the seconds of training and the accuracy against the number of labels."""
    left, right = figure.subplots(1, 2)
    for name, points in results.items():
        labels = [int(one) for one in points]
        left.plot(labels, [one["seconds"] for one in points.values()], "o-", markersize=4)
        accuracy = [one["accuracy"] for one in points.values()]
        right.plot(labels, accuracy, "o-", markersize=4, label=name)
    for axes, text in (
        (left, "CPU seconds of training"),
        (right, "steps with the right label, %"),
    ):
        axes.set(xscale="log", xlabel="labels", ylabel=text)
        axes.grid(alpha=0.3)
    left.set_yscale("log")
    right.legend(frameon=False, fontsize=7)


# Columns of a table: heading, and the end of the name of the experiment that has the number.
OUTPUT_CODE_COLUMNS = {"CPU s": "/cpu"}
HOUSE_COLUMNS = {"macro": "/macro", "CPU s": "/cpu", "gap, %": "/gap", "GB": "/gb"}


def write_tables(results, path, paper, columns, notes_begin):
    """Write the experiments and claims of ``seqlab reproduce`` as Markdown.

    Parameters
    ----------
    results : dict
    path : Path
    paper : str
        Short name of the paper, an argument of `seqlab reproduce`.
    columns : dict of str to str
    notes_begin : str
        Beginning of the paragraphs at the end of the module's docstring that say how the numbers were
        obtained, and what had been seen before.
    """
    from seqlab.papers.experiment import find_paper

    module = find_paper(paper)
    repeats = getattr(module, "REPEATS", "seeds")
    lines = [
        f"# {results['title']}",
        "",
        f"Written by `benchmarks/plots.py` from the results of `seqlab reproduce {paper}`; the docstring of",
        f"`{module.__name__}` explains the names. CPU seconds of training on one thread; goals are",
        "lower limits for accuracies and upper limits for the other numbers.",
        "",
        f"| experiment | mean | {repeats} | goal | {' | goal | '.join(columns)} | goal |",
        "|---|---|---|---|" + "---|---|" * len(columns),
    ]
    found = {one["name"]: one for one in results["experiments"]}
    rows = dict.fromkeys(_row_name(name, columns.values()) for name in found)
    for name in rows:
        cells = _cells(found.get(name, {}), with_values=True)
        for end in columns.values():
            cells += _cells(found.get(name + end, {}))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    _, _, notes = module.__doc__.partition(notes_begin)
    lines += ["", notes_begin + notes.rstrip()]
    lines += ["", "| claim | verdict | numbers |", "|---|---|---|"]
    for claim in results["claims"]:
        lines.append(f"| {claim['text']} | {claim['verdict']} | {claim['evidence']} |")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _row_name(name, ends):
    """Return the row of an experiment: its name without the end that says which column it is in."""
    return next((name.removesuffix(end) for end in ends if name.endswith(end)), name)


def _cells(experiment, *, with_values=False):
    """Return mean, values of the repeats if wanted, and goal as text."""
    mean = f"{experiment['measured']:.1f}" if experiment else ""
    values = [" ".join(f"{value:.1f}" for value in experiment.get("values", ()))]
    goal = f"{experiment['target']:g}" if experiment.get("target") else ""
    return [mean, *(values if with_values else []), goal]


def save_picture(figure, name):
    """Save a picture of the guide: text stays text, and equal results give equal bytes."""
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(ASSETS / f"{name}.svg", metadata={"Date": None})


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
    results = load("output_codes")
    if results:
        figure = Figure(figsize=(9, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        accuracy_of_seconds(results, 1, left)
        accuracy_of_seconds(results, 3, right)
        left.set_ylabel("letters with the right label, %")
        right.legend(frameon=False, fontsize=7, loc="lower left")
        save_picture(figure, "nettalk")
        path = RESULTS / "output_codes.md"
        write_tables(results, path, "secoc", OUTPUT_CODE_COLUMNS, "Three seeds each")
    results = load("relational")
    if results:
        path = RESULTS / "relational.md"
        write_tables(results, path, "relational", HOUSE_COLUMNS, "One rule chooses")
    results = load("many_labels")
    if results:
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        against_labels(results, figure)
        save_picture(figure, "many_labels")


if __name__ == "__main__":
    draw()
