"""Saving the model of ``seqlab train``: a model that has been trained is not lost.

Ctrl-C waits until the file is complete. If the file cannot be written, because the disk is full or the
folder has gone, the model is written to the folder for temporary files or to the home folder instead, and
the message says where.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from seqlab.cli import _labelers, _read_options
from seqlab.cli._errors import FAILURE, INTERRUPTED, TERMINATED, CommandError, Interrupted
from seqlab.utils.signals import hold_interrupts


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
    """Save a model that has been trained; an interrupt at any time takes effect afterwards."""
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


def save_model(tagger: Any, options: _read_options.ReadOptions, output: Path) -> Path:
    """Save a fitted tagger and return its path; if that fails, save it elsewhere and say where."""
    from seqlab.persistence import save

    tagger.source_ = options.to_dict()
    # Threads and progress belong to this command, not to the model.
    for labeler in (tagger.labeler, tagger.labeler_):
        _labelers.set_supported_params(labeler, n_jobs=None, verbose=False)
    try:
        save(tagger, output)
        return output
    except OSError as error:
        reason = (error.strerror or str(error)).rpartition(": ")[2].lower()
    for folder in _other_folders():
        own = None
        try:
            own = Path(tempfile.mkdtemp(prefix="seqlab-", dir=folder))
            path = own / output.name
            save(tagger, path)
        except OSError:
            if own is not None:
                own.rmdir()
            continue
        raise CommandError(f"{output}: {reason}; the model was saved as {path} instead", FAILURE)
    raise CommandError(f"{output}: {reason}; no other folder can hold the model either", FAILURE)


def _other_folders() -> list[str]:
    try:
        home = [str(Path.home())]
    except RuntimeError:  # a user without a home folder
        home = []
    return [tempfile.gettempdir(), *home]
