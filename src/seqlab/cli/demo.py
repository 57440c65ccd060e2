"""``seqlab demo``: the whole library in twenty seconds, on generated addresses."""

from __future__ import annotations

import re
import threading
import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from seqlab.cli import _console
from seqlab.cli._errors import check_output

_HELP = """
Train on generated addresses, label new ones, show what was learned.

  [bold]seqlab demo[/bold]
  [bold]seqlab demo --save address.seqlab[/bold]     [dim]keep the model, to play with it[/dim]
"""
_N_TRAIN, _N_TEST = 1500, 400
_N_WARM_UP = 400  # enough for every kernel that training calls to be called
_PATIENCE = 2.0  # seconds that a warm-up may take before a word is due
# Written for this page: none comes from the generator, and two are meant to be hard.
_NEW = (
    "1600 Pennsylvania Ave NW , Washington , DC 20500",
    "Flat 3 , 221B Baker Street , London NW1 6XE",
    "Frau Ada Lovelace , Lindenstr. 12 , 10969 Berlin",
    "14 bis rue de la Paix 75002 paris",
    "apt 9 742 evergreen terrace springfield",
)
_SHOWN_LABELS = ("B-HouseNumber", "B-Street", "I-Street", "B-City", "B-Postcode")


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("demo", help=_console.teach(_HELP), rich_help_panel="Commands")(demo)


def demo(
    save: Annotated[
        Path | None, typer.Option("--save", help="Keep the model in this file.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Also save the screen as a picture.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")] = -1,
) -> None:
    """Show everything once; see `_HELP`."""
    for path in (save, svg):
        if path is not None:
            check_output(path)
    options: dict[str, Any] = {} if svg is None else {"record": True, "width": 92}
    console = _console.stdout(**options)
    _say(console, 1, "Invented addresses of nine countries, some written in haste")
    train, test = _make_data(console)
    _say(console, 2, "Learning a conditional random field from them")
    tagger = _train(console, train, jobs)
    _score(console, tagger, test)
    _say(console, 3, "Labelling new addresses")
    _tag(console, tagger)
    _say(console, 4, "What it has learned")
    _explain(console, tagger)
    if save is not None:
        _keep(tagger, save)
    _next(console, save)
    if svg is not None:
        picture = console.export_svg(title="seqlab demo")
        # No fonts from elsewhere: the picture must not ask the network for anything.
        svg.write_text(
            re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL), encoding="utf-8"
        )


def _say(console: Any, number: int, title: str) -> None:
    console.print()
    console.print(f"[bold dodger_blue1]{number}[/bold dodger_blue1]  [bold]{title}[/bold]")
    console.print()


def _make_data(console: Any) -> tuple[Any, Any]:
    from seqlab.datasets import make_addresses
    from seqlab.inspection.terminal import LabelStrip, colours_of

    train: Any = make_addresses(_N_TRAIN, random_state=0)
    test: Any = make_addresses(_N_TEST, random_state=1)
    colours = colours_of(train.target_names)
    tokens = sum(map(len, train.data))
    for line in train.text[:3]:
        console.print(f"   [dim]{line}[/dim]", soft_wrap=True)
    console.print(
        f"   [dim]...[/dim]  {len(train.data):,} in all, {tokens:,} tokens; each labelled:"
    )
    console.print()
    example = next(k for k, words in enumerate(train.data) if 7 <= len(words) <= 9)
    words = [token for (token,) in train.data[example]]
    console.print(_indented(LabelStrip(words, train.target[example], colours=colours)))
    return train, test


def _train(console: Any, train: Any, jobs: int) -> Any:
    from seqlab import LinearChainCRF, Tagger, Templates

    _warm_up(train, jobs)
    began = time.perf_counter()
    labeler = LinearChainCRF(c2=0.1, tol=1e-3, n_jobs=jobs, verbose=True)
    tagger = Tagger(Templates.default(), labeler).fit(train.data, train.target)
    seconds = _console.seconds(time.perf_counter() - began)
    fitted = tagger.labeler_
    fitted.set_params(verbose=False, n_jobs=None)
    tagger.set_params(labeler__verbose=False, labeler__n_jobs=None)
    console.print(
        f"   {fitted.n_features_in_:,} features, {len(tagger.classes_)} labels, "
        f"{fitted.n_iter_} iterations, {seconds}"
    )
    return tagger


def _warm_up(train: Any, jobs: int) -> None:
    """Have everything compiled, so that the time of training is that of training."""
    from seqlab import LinearChainCRF, Tagger, Templates

    note = threading.Timer(
        _PATIENCE,
        _console.stderr().print,
        ["   first run: compiling, about half a minute"],
        {"style": "dim"},
    )
    note.daemon = True
    note.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it need not converge
            X, y = train.data[:_N_WARM_UP], train.target[:_N_WARM_UP]
            labeler = LinearChainCRF(c2=0.1, max_iter=3, n_jobs=jobs)
            Tagger(Templates.default(), labeler).fit(X, y).predict_proba(X)
    finally:
        note.cancel()


def _score(console: Any, tagger: Any, test: Any) -> None:
    from seqlab.metrics import span_report

    report = span_report(
        test.target, tagger.predict(test.data), confidence=0.95, random_state=0
    ).to_dict()["micro avg"]
    low, high = report["f1_interval"]
    console.print(
        f"   on {len(test.data)} addresses it has not seen: F1 [bold]{100 * report['f1']:.1f}[/bold] "
        f"[dim](95 % interval {100 * low:.1f} to {100 * high:.1f})[/dim]"
    )


def _tag(console: Any, tagger: Any) -> None:
    from seqlab.inspection.terminal import LabelStrip, colours_of

    X = [[(word,) for word in line.split()] for line in _NEW]
    codes = {label: code for code, label in enumerate(tagger.classes_.tolist())}
    colours = colours_of(codes)
    answers = zip(X, tagger.predict(X), tagger.predict_proba(X), strict=True)
    for tokens, labels, proba in answers:
        sure = [float(proba[t, codes[label]]) for t, label in enumerate(labels.tolist())]
        words = [word for (word,) in tokens]
        strip = LabelStrip(words, labels.tolist(), sure, colours=colours)
        console.print(_indented(strip))
        console.print()
    console.print(
        "   [dim]━ sure   ╍ doubtful, below 90 %   ┈ a guess, below 60 %; the number is the "
        "probability[/dim]"
    )


def _explain(console: Any, tagger: Any) -> None:
    from rich.text import Text

    from seqlab.inspection import top_features, top_transitions
    from seqlab.inspection.terminal import colours_of, kind_of

    colours = colours_of(tagger.classes_.tolist())
    console.print("   [dim]features that speak for a label[/dim]")
    for one in top_features(tagger, 4, labels=_SHOWN_LABELS):
        head = Text(one.label, colours[kind_of(one.label)])
        _flow(console, head, 13, [_weighted(f.feature, f.weight) for f in one.positive])
    console.print()
    console.print("   [dim]from one label to the next[/dim]")
    found = top_transitions(tagger)
    for title, some in (("likes", found[:5]), ("dislikes", found[:-4:-1])):
        moves = [_weighted(f"{one.source} → {one.target}", one.weight) for one in some]
        _flow(console, Text(title), 8, moves)


def _weighted(name: str, weight: float) -> Any:
    from rich.text import Text

    return Text.assemble(name, " ", (f"{weight:+.1f}", "dim"))


def _flow(console: Any, head: Any, width: int, pieces: list[Any]) -> None:
    """Print a head and pieces beside it, broken into lines between pieces only."""
    from rich.text import Text

    head.pad_right(width - head.cell_len)
    line, beside = Text.assemble("   ", head), 0
    for piece in pieces:
        if beside and line.cell_len + 3 + piece.cell_len > console.width:
            console.print(line, soft_wrap=True)
            line, beside = Text(" " * (width + 3)), 0
        line.append_text(Text.assemble("   " if beside else "  ", piece))
        beside += 1
    console.print(line, soft_wrap=True)


def _keep(tagger: Any, path: Path) -> None:
    from seqlab.cli._reading import Reading
    from seqlab.persistence import save

    tagger.source_ = Reading(width=2).as_attribute()
    save(tagger, path)


def _next(console: Any, saved: Path | None) -> None:
    console.print()
    console.print("[bold]What to try next[/bold]")
    console.print()
    model = saved or Path("address.seqlab")
    steps = [
        ("seqlab datasets export addresses .", "the data of this demo as column files"),
        (f"seqlab train addresses-train.conll -o {model}", "your own file goes the same way"),
        (f"seqlab evaluate {model} addresses-test.conll", "scores, intervals, confusions"),
        (f"echo '10 Downing St, London' | seqlab tag {model} -f text --pretty", ""),
    ]
    for command, what in steps:
        console.print(f"   {command}", soft_wrap=True)
        if what:
            console.print(f"      [dim]{what}[/dim]", soft_wrap=True)
    console.print()


def _indented(renderable: Any) -> Any:
    from rich.padding import Padding

    return Padding(renderable, (0, 0, 0, 3))
