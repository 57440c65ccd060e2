"""Read the training file and extract its features while scikit-learn is imported.

The import takes a second on one core. Reading a regular column file and extracting its features is mostly
compiled code, which needs no scikit-learn and releases the interpreter lock, so a thread does it on another
core. The thread imports nothing and loads no kernel: an import in two threads can deadlock if one of them is
interrupted. All this only saves time: if the file cannot be read ahead, for whatever reason, the command
reads it as usual afterwards, and reports what is wrong.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqlab.cli._read_options import ReadOptions
from seqlab.utils.signals import hold_interrupts

if TYPE_CHECKING:
    from seqlab.cli._files import TrainingFile
    from seqlab.features.templates.extraction import TemplateParams

_MODULES = (
    "seqlab.cli._files",
    "seqlab.data._kernels",
    "seqlab.data.io.token_table",
    "seqlab.features.templates.extraction",
    "seqlab.features._kernels.code_tables",
    "seqlab.features._kernels.template_rows",
)


class ReadingAhead:
    """A training file that is being read.

    Attributes
    ----------
    result : TrainingFile or None
        What was read; None until it is complete, and if the file must be read as usual.
    """

    def __init__(self, file: str, options: ReadOptions, params: TemplateParams) -> None:
        self.result: TrainingFile | None = None
        self._arguments = file, options, params
        self._is_stopped = threading.Event()

    def stop(self) -> None:
        """Let `run` end at its next block."""
        self._is_stopped.set()

    def run(self) -> None:
        """Read the file."""
        try:
            self.result = _read_and_extract(*self._arguments, self._is_stopped.is_set)
        except Exception:  # the command reads the file again as usual, and reports the error
            self.result = None


@contextmanager
def reading_ahead(
    file: str, options: ReadOptions, template: Path | None, min_count: int, n_jobs: int
) -> Iterator[ReadingAhead | None]:
    """Read a training file during the block, if a thread can read it; wait for it at the end.

    Parameters
    ----------
    file : str
    options : ReadOptions
    template : Path or None
        File of templates; None for the default ones.
    min_count : int
        As in `seqlab.features.Templates`.
    n_jobs : int
        If it is 1, the file is read before the block, without a thread.
    """
    can_read = (
        options.format == "columns"
        and options.columns is None
        and options.comment is None
        and options.encoding.lower() in ("utf-8", "utf8")
        and all(os.path.isfile(path) for path in (file, template) if path is not None)
    )  # only regular files: a pipe cannot be read twice
    params = _load(template, min_count) if can_read else None
    if params is None:
        yield None
        return
    ahead = ReadingAhead(file, options, params)
    if n_jobs == 1:
        ahead.run()
        yield ahead
        return
    thread = threading.Thread(target=ahead.run, name="seqlab-reading")
    thread.start()
    try:
        yield ahead
    except BaseException:
        ahead.stop()
        raise
    finally:
        thread.join()


def _load(template: Path | None, min_count: int) -> TemplateParams | None:
    """Import and load what the thread needs; return None if the templates are wrong."""
    with hold_interrupts():
        for name in _MODULES:
            import_module(name)
        from seqlab.data.errors import InputError
        from seqlab.data.io import token_table
        from seqlab.features.templates import extraction

        token_table.load_kernels()
        extraction.load_kernels()
    if template is None:
        return extraction.TemplateParams(min_count=min_count)
    try:
        lines = extraction.read_lines(template)
        extraction.parse_lines(lines, "auto", str(template))
    except (InputError, OSError):
        return None
    return extraction.TemplateParams(lines, min_count, source=str(template))


def _read_and_extract(
    file: str, options: ReadOptions, params: TemplateParams, is_stopped: Callable[[], bool]
) -> TrainingFile | None:
    from seqlab.cli._files import TrainingFile
    from seqlab.data.io.token_table import read_token_table
    from seqlab.features.templates.extraction import ExtractedTokens, extract

    label: Any = -1 if options.label is None else options.label
    found = read_token_table(file, label=int(label), sep=options.separator, is_stopped=is_stopped)
    if found is None:
        return None
    tokens, labels = found
    features = extract(tokens, params, is_stopped=is_stopped)
    width = len(tokens.columns) + 1
    X: Any = ExtractedTokens(tokens, params, features)
    return TrainingFile(X, labels, replace(options, width=width), True, False)
