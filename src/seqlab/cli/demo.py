"""``seqlab demo``: train, evaluate, tag and inspect in twenty seconds, on generated addresses."""

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
from seqlab.cli._labelers import JobsOption

HELP = """
Train on generated addresses, label new addresses, and show what the model has learned.

  [bold]seqlab demo[/bold]
  [bold]seqlab demo --save address.seqlab[/bold]     [dim]save the model for the other commands[/dim]
"""
_N_TRAIN, _N_TEST = 1500, 400
_N_WARM_UP = 400  # enough to compile every kernel that training calls
_NOTE_SECONDS = 2.0  # a note is printed if compiling takes longer
# Written for this demo: none comes from the generator, and two are difficult on purpose.
_NEW = (
    "1600 Pennsylvania Ave NW , Washington , DC 20500",
    "Flat 3 , 221B Baker Street , London NW1 6XE",
    "Frau Ada Lovelace , Lindenstr. 12 , 10969 Berlin",
    "14 bis rue de la Paix 75002 paris",
    "apt 9 742 evergreen terrace springfield",
)
_SHOWN_LABELS = ("B-HouseNumber", "B-Street", "I-Street", "B-City", "B-Postcode")


def demo(
    save: Annotated[
        Path | None, typer.Option("--save", help="Save the model to this file.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Also save the output as an SVG picture.")
    ] = None,
    jobs: JobsOption = -1,
) -> None:
    """Run the demo; see `HELP`."""
    for path in (save, svg):
        if path is not None:
            check_output(path)
    options: dict[str, Any] = {} if svg is None else {"record": True, "width": 92}
    console = _console.stdout(**options)
    _print_title(console, 1, "Generated addresses of nine countries, some written carelessly")
    train, test = _make_data(console)
    _print_title(console, 2, "Train a conditional random field on them")
    tagger = _train(console, train, jobs)
    _score(console, tagger, test)
    _print_title(console, 3, "Label new addresses")
    _tag(console, tagger)
    _print_title(console, 4, "What the model has learned")
    _explain(console, tagger)
    if save is not None:
        _save(tagger, save)
    _print_next_steps(console, save)
    if svg is not None:
        from seqlab.data.io.streams import open_writer

        picture = console.export_svg(title="seqlab demo")
        # Without web fonts: the picture must not need the network.
        with open_writer(svg) as write:
            write(re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL))


def _print_title(console: Any, number: int, title: str) -> None:
    console.print()
    console.print(f"[bold dodger_blue1]{number}[/bold dodger_blue1]  [bold]{title}[/bold]")
    console.print()


def _make_data(console: Any) -> tuple[Any, Any]:
    from seqlab.datasets import make_addresses
    from seqlab.inspection.terminal import LabelStrip, assign_colours

    train: Any = make_addresses(_N_TRAIN, random_state=0)
    test: Any = make_addresses(_N_TEST, random_state=1)
    colours = assign_colours(train.target_names)
    tokens = sum(map(len, train.data))
    for line in train.text[:3]:
        console.print(f"   [dim]{line}[/dim]", soft_wrap=True)
    console.print(
        f"   [dim]...[/dim]  {len(train.data):,} addresses, {tokens:,} tokens, each with a label:"
    )
    console.print()
    example = next(k for k, words in enumerate(train.data) if 7 <= len(words) <= 9)
    words = [token for (token,) in train.data[example]]
    console.print(_indented(LabelStrip(words, train.target[example], colours=colours)))
    return train, test


def _train(console: Any, train: Any, jobs: int) -> Any:
    from seqlab import LinearChainCRF, Tagger, Templates

    _compile_kernels(train, jobs)
    start = time.perf_counter()
    labeler = LinearChainCRF(c2=0.1, tol=1e-3, n_jobs=jobs, verbose=True)
    tagger = Tagger(Templates.default(), labeler).fit(train.data, train.target)
    seconds = _console.format_seconds(time.perf_counter() - start)
    fitted = tagger.labeler_
    fitted.set_params(verbose=False, n_jobs=None)
    tagger.set_params(labeler__verbose=False, labeler__n_jobs=None)
    console.print(
        f"   {fitted.n_features_in_:,} features, {len(tagger.classes_)} labels, "
        f"{fitted.n_iter_} iterations, {seconds}"
    )
    return tagger


def _compile_kernels(train: Any, jobs: int) -> None:
    """Compile all kernels first, so that the training time does not include compilation."""
    from seqlab import LinearChainCRF, Tagger, Templates

    note = threading.Timer(
        _NOTE_SECONDS,
        _console.stderr().print,
        ["   first run: compiling takes about half a minute"],
        {"style": "dim"},
    )
    note.daemon = True
    note.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # three iterations do not converge
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
        f"   on {len(test.data)} new addresses: F1 [bold]{100 * report['f1']:.1f}[/bold] "
        f"[dim](95 % interval {100 * low:.1f} to {100 * high:.1f})[/dim]"
    )


def _tag(console: Any, tagger: Any) -> None:
    from seqlab.inspection.terminal import LabelStrip, assign_colours

    X = [[(word,) for word in line.split()] for line in _NEW]
    codes = {label: code for code, label in enumerate(tagger.classes_.tolist())}
    colours = assign_colours(codes)
    predictions = zip(X, tagger.predict(X), tagger.predict_proba(X), strict=True)
    for tokens, labels, proba in predictions:
        confidence = [float(proba[t, codes[label]]) for t, label in enumerate(labels.tolist())]
        words = [word for (word,) in tokens]
        strip = LabelStrip(words, labels.tolist(), confidence, colours=colours)
        console.print(_indented(strip))
        console.print()
    console.print(
        "   [dim]probability of the label: ━ at least 90 %   ╍ 60 to 90 %   ┈ below 60 %[/dim]"
    )


def _explain(console: Any, tagger: Any) -> None:
    from rich.text import Text

    from seqlab.inspection import top_features, top_transitions
    from seqlab.inspection.terminal import assign_colours, phrase_type

    colours = assign_colours(tagger.classes_.tolist())
    console.print("   [dim]features with the largest weights for a label[/dim]")
    for one in top_features(tagger, 4, labels=_SHOWN_LABELS):
        head = Text(one.label, colours[phrase_type(one.label)])
        _print_wrapped(console, head, 13, [_weighted(f.feature, f.weight) for f in one.positive])
    console.print()
    console.print("   [dim]transitions from one label to the next[/dim]")
    found = top_transitions(tagger)
    for title, some in (("positive", found[:5]), ("negative", found[:-4:-1])):
        moves = [_weighted(f"{one.source} → {one.target}", one.weight) for one in some]
        _print_wrapped(console, Text(title), 8, moves)


def _weighted(name: str, weight: float) -> Any:
    from rich.text import Text

    return Text.assemble(name, " ", (f"{weight:+.1f}", "dim"))


def _print_wrapped(console: Any, head: Any, width: int, pieces: list[Any]) -> None:
    """Print a heading and pieces of text beside it; lines break only between pieces."""
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


def _save(tagger: Any, path: Path) -> None:
    from seqlab.cli._read_options import ReadOptions
    from seqlab.persistence import save

    tagger.source_ = ReadOptions(width=2).to_dict()
    save(tagger, path)


def _print_next_steps(console: Any, saved: Path | None) -> None:
    console.print()
    console.print("[bold]What to try next[/bold]")
    console.print()
    model = saved or Path("address.seqlab")
    steps = [
        ("seqlab datasets export addresses .", "write the data of this demo as column files"),
        (
            f"seqlab train addresses-train.conll -o {model}",
            "train on a file; use your own in the same way",
        ),
        (
            f"seqlab evaluate {model} addresses-test.conll",
            "scores, confidence intervals, confusions",
        ),
        (
            f"echo '10 Downing St, London' | seqlab tag {model} -f text --pretty",
            "label text from standard input",
        ),
    ]
    for command, purpose in steps:
        console.print(f"   {command}", soft_wrap=True)
        console.print(f"      [dim]{purpose}[/dim]", soft_wrap=True)
    console.print()


def _indented(renderable: Any) -> Any:
    from rich.padding import Padding

    return Padding(renderable, (0, 0, 0, 3))
