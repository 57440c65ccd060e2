"""Saving the model of ``seqlab train``: a model that has been trained is not lost.

Ctrl-C waits until the file is complete. If the file cannot be written, because the disk is full or the
folder has gone, the model is written to the folder for temporary files or to the home folder instead, and
the message says where. The same happens if Ctrl-C ends the writing to a pipe, which may have no reader.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from seqlab.cli import _labelers, _read_options
from seqlab.cli._errors import FAILURE, INTERRUPTED, TERMINATED, CommandError, Interrupted
from seqlab.utils.files import is_special
from seqlab.utils.signals import hold_interrupts

MODEL_NAME = "model.seqlab"  # of a model that was meant for a device or a pipe


def import_modules(*names: str) -> None:
    """Import modules while interrupts wait: one inside an import may be swallowed, or leave half a module."""
    with hold_interrupts():
        for name in names:
            import_module(name)


def finish_training(
    tagger: Any,
    options: _read_options.ReadOptions,
    output: Path,
    print_notes: Callable[[], None],
) -> None:
    """Save a model that has been trained; an interrupt at any time takes effect afterwards.

    A device or a pipe can block for ever: there an interrupt takes effect at once, and the model is saved
    elsewhere.
    """
    if is_special(output):
        _write_special(tagger, options, output, print_notes)
        return
    try:
        with hold_interrupts(raise_after=False) as held:
            print_notes()
            save_model(tagger, options, output)
    except KeyboardInterrupt:  # just before the interrupts were held
        with hold_interrupts(raise_after=False) as held:
            save_model(tagger, options, output)
            held.number = held.number or int(signal.SIGINT)
    if held.number is not None:
        code = TERMINATED if held.number == signal.SIGTERM else INTERRUPTED
        raise Interrupted(f"interrupted after training; the model is in {output}", code)


def _write_special(
    tagger: Any,
    options: _read_options.ReadOptions,
    output: Path,
    print_notes: Callable[[], None],
) -> None:
    import_modules("seqlab.persistence")
    try:
        print_notes()
        save_model(tagger, options, output)
    except KeyboardInterrupt:
        with hold_interrupts(raise_after=False):
            path = save_elsewhere(tagger, options, MODEL_NAME)
        where = "no other folder can hold the model" if path is None else f"the model is in {path}"
        raise Interrupted(f"interrupted while writing to {output}; {where}") from None


def save_model(tagger: Any, options: _read_options.ReadOptions, output: Path) -> Path:
    """Save a fitted tagger and return its path; if that fails, save it elsewhere and say where."""
    from seqlab.persistence import save

    _prepare(tagger, options)
    try:
        save(tagger, output)
        return output
    except OSError as error:
        reason = (error.strerror or str(error)).rpartition(": ")[2].lower()
    path = save_elsewhere(tagger, options, MODEL_NAME if is_special(output) else output.name)
    if path is None:
        raise CommandError(
            f"{output}: {reason}; no other folder can hold the model either", FAILURE
        )
    raise CommandError(f"{output}: {reason}; the model was saved as {path} instead", FAILURE)


def save_elsewhere(tagger: Any, options: _read_options.ReadOptions, name: str) -> Path | None:
    """Save a fitted tagger in a new folder for temporary files; return None if there is no space."""
    from tempfile import mkdtemp

    from seqlab.persistence import save

    _prepare(tagger, options)
    for folder in _other_folders():
        own = None
        try:
            own = Path(mkdtemp(prefix="seqlab-", dir=folder))
            save(tagger, own / name)
        except OSError:
            if own is not None:
                own.rmdir()
            continue
        return own / name
    return None


def _prepare(tagger: Any, options: _read_options.ReadOptions) -> None:
    tagger.source_ = options.to_dict()
    # Threads and progress belong to this command, not to the model.
    for labeler in (tagger.labeler, tagger.labeler_):
        _labelers.set_supported_params(labeler, n_jobs=None, verbose=False)


def _other_folders() -> list[str]:
    from tempfile import gettempdir

    try:
        home = [str(Path.home())]
    except RuntimeError:  # a user without a home folder
        home = []
    return [gettempdir(), *home]
