r"""Template syntax: parse template lines and Python specs.

A template is text with placeholders. Each placeholder reads one value near the current step; the text
with the placeholders filled in is the name of the feature::

    U05:%x[-1,0]/%x[0,1]        at the second token of   He PRP / reckons VBZ   gives   U05:He/VBZ

There are three ways to write a template, and one list may mix them:

* CRF++: ``%x[row,column]``; the first letter says whether the feature belongs to the label
  (``U``) or to the pair of the previous and the current label (``B``). ``B`` alone is the plain
  label transition.
* Wapiti: first letter ``u``, ``b`` or ``*`` (both); the commands ``%x``,
  ``%t[row,column,"regex"]`` (``true`` or ``false``) and ``%m[row,column,"regex"]`` (the matched
  part); ``%X``, ``%T``, ``%M`` convert the *result* to lower case (the matching is case-sensitive).
  ``%x[@1,0]`` counts from the beginning of the sequence, ``%x[@-1,0]`` from its end; ``%x[*2,0]``
  reads at the distance written in column 2. As in Wapiti, the first letter is shown in lower case
  and everything after a ``#`` is a comment.
* Python: ``(row, column)`` or ``(row, column, form)``, and a list of these for a conjunction:
  ``(0, "word", "suffix3")`` gives ``word[0].suffix3=ing``; ``[(-1, "pos"), (0, "pos")]`` gives
  ``pos[-1]|pos[0]=DT|NN``. Forms: see `seqlab.features.word_forms`.

``__BOS__`` and ``__EOS__`` alone are flags of the first and the last step. Blank lines and lines
that begin with ``#`` are skipped.

References
----------
T. Kudo, "CRF++: Yet Another CRF toolkit", section "Preparing feature templates"; the manual page of
Wapiti, section PATTERNS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from seqlab.data.errors import InputError
from seqlab.features.word_forms import form_function

FLAGS = {"__BOS__": "first", "__EOS__": "last"}

# Blanks inside the brackets are allowed, because Wapiti's own examples have them. Repetitions are possessive
# (*+), so that the time is proportional to the length of a line.
_PLACEHOLDER = re.compile(
    r"""%(?P<command>[xXtTmM])
        \[\s*+(?P<mode>[@*]?)\s*+(?P<row>[+-]?\d++)\s*+,\s*+(?P<column>\d++)\s*+
        (?:,\s*+"(?P<regex>(?:[^"\\]|\\.)*+)"\s*+)?\]""",
    re.VERBOSE,
)
# Each distance up to the largest one has its own boundary mark. CRF++ allows 8.
_MAX_DISTANCE = 1000
_MAX_NUMBER = 10**9
_MODES = {"": "relative", "@": "absolute", "*": "indirect"}
_ONLY_IN_WAPITI = re.compile(r"^[ub*]|%[XtTmM]|%x\[\s*[@*]")


class Read(NamedTuple):
    """One placeholder of a template: which value it reads.

    Attributes
    ----------
    column : int or str
        Column, by number or by name; -1 for a flag.
    row : int
        Distance from the current step; for ``mode="absolute"`` the position (1 is the first step,
        -1 the last), for ``mode="indirect"`` the column that holds the distance.
    form : str
        Word form, ``""`` for the value itself.
    mode : str
        ``relative``, ``absolute``, ``indirect``, or for flags ``first`` and ``last``.
    """

    column: int | str
    row: int
    form: str = ""
    mode: str = "relative"


class Template(NamedTuple):
    """A parsed template.

    Attributes
    ----------
    text : str
        As the user wrote it.
    place : str
        Where it was written, for error messages: ``line 7 of chunk.tpl`` or ``templates[6]``.
    reads : tuple of Read
    literals : tuple of str
        The text around the placeholders, one more than there are placeholders. Empty for Python specs,
        whose text depends on the names of the columns.
    unary, edge : bool
        Whether it produces features of the label, and of the label pair.
    """

    text: str
    place: str
    reads: tuple[Read, ...]
    literals: tuple[str, ...]
    unary: bool
    edge: bool

    @property
    def where(self) -> str:
        """The template and its place, for the beginning of error messages."""
        return f'template "{self.text}" ({self.place})'


def parse_templates(
    lines: Sequence[Any], *, syntax: str = "auto", source: str | None = None
) -> tuple[list[Template], str]:
    r"""Parse a list of template lines and specs.

    Parameters
    ----------
    lines : sequence of str, tuple or list
        One entry per template; blank lines and comments are allowed.
    syntax : {"auto", "crfpp", "wapiti"}
        How to read the strings. "auto" chooses Wapiti if any line uses syntax that CRF++ does not have.
    source : str, optional
        Name of the file that contains the lines; error messages then give line numbers.

    Returns
    -------
    templates : list of Template
    syntax : "crfpp" or "wapiti"

    Examples
    --------
    >>> templates, syntax = parse_templates(["# words", "U05:%x[-1,0]/%x[0,0]", "B"])
    >>> syntax, templates[0].literals, templates[0].reads[0].row, templates[1].edge
    ('crfpp', ('U05:', '/', ''), -1, True)
    """
    if isinstance(lines, str | bytes) or not isinstance(lines, Sequence):
        raise InputError(
            f"templates must be a list of template lines, not {type(lines).__name__}; "
            "use Templates.from_file(path) for a file"
        )
    if syntax == "auto":
        syntax = "wapiti" if any(map(_is_wapiti, lines)) else "crfpp"
    elif syntax not in ("crfpp", "wapiti"):
        raise InputError(f"syntax must be 'auto', 'crfpp' or 'wapiti', not {syntax!r}")
    templates = []
    for number, line in enumerate(lines):
        place = f"line {number + 1} of {source}" if source else f"templates[{number}]"
        if isinstance(line, str):
            text = _strip_comment(line, syntax)
            if text:
                templates.append(_parse_line(text, place, syntax))
        else:
            templates.append(_parse_spec(line, place))
    return templates, syntax


def _is_wapiti(line: Any) -> bool:
    return isinstance(line, str) and bool(_ONLY_IN_WAPITI.search(line))


def _strip_comment(line: str, syntax: str) -> str:
    if line.startswith("#"):
        return ""
    if syntax == "wapiti":
        # A '#' begins a comment, except inside the quotes of a regular expression.
        masked = _PLACEHOLDER.sub(lambda match: "x" * len(match[0]), line)
        line = line[: len(masked.partition("#")[0])]
    return line.rstrip()


def _parse_line(text: str, place: str, syntax: str) -> Template:
    where = f'template "{text}" ({place})'
    if text in FLAGS:
        return Template(text, place, (Read(-1, 0, "", FLAGS[text]),), (text, ""), True, False)
    is_wapiti = syntax == "wapiti"
    kind = text[0].lower() if is_wapiti else text[0]
    if kind not in (("u", "b", "*") if is_wapiti else ("U", "B")):
        kinds = "U (label) or B (label pair)" + (" or * (both)" if is_wapiti else "")
        raise InputError(f"{where} must begin with {kinds}, not {text[0]!r}")
    shown = kind + text[1:]
    literals, reads, at = [], [], 0
    for match in _PLACEHOLDER.finditer(shown):
        literals.append(shown[at : match.start()])
        reads.append(_make_read(match, where, syntax))
        at = match.end()
    literals.append(shown[at:])
    for literal in literals:
        if "%" in literal:
            unknown = literal[literal.index("%") :][:16]
            more = ', %t[row,column,"regex"] or %m[row,column,"regex"]' if is_wapiti else ""
            raise InputError(f'{where}: cannot read "{unknown}"; a value is %x[row,column]{more}')
    return Template(
        text, place, tuple(reads), tuple(literals), kind.lower() in "u*", kind.lower() in "b*"
    )


def _make_read(match: re.Match[str], where: str, syntax: str) -> Read:
    command, mode, regex = match["command"], match["mode"], match["regex"]
    if syntax == "crfpp" and (command != "x" or mode):
        raise InputError(f'{where}: "{match[0]}" is Wapiti syntax, but syntax="crfpp" was given')
    if (command in "tTmM") != (regex is not None):
        needs = "needs a" if regex is None else "takes no"
        raise InputError(f'{where}: "{match[0]}" {needs} regular expression')
    form = {"x": "", "X": "X"}.get(command, f"{command}:{regex}")
    _check_form(form, where)
    # Python refuses to convert thousands of digits.
    row, column = (
        int(match[name]) if len(match[name].lstrip("+-0")) <= 10 else _MAX_NUMBER + 1
        for name in ("row", "column")
    )
    _check_numbers(row, column, _MODES[mode], where)
    return Read(column, row, form, _MODES[mode])


def _check_numbers(row: int, column: int, mode: str, where: str) -> None:
    if mode == "relative" and abs(row) > _MAX_DISTANCE:
        raise InputError(f"{where}: a row is a distance of at most {_MAX_DISTANCE:,} steps")
    if abs(row) > _MAX_NUMBER or column > _MAX_NUMBER:
        raise InputError(f"{where}: rows and columns are at most {_MAX_NUMBER:,}")


def _parse_spec(spec: Any, place: str) -> Template:
    parts: Iterable[Any] = [spec] if isinstance(spec, tuple) else spec
    where = f'template "{spec}" ({place})'
    if not isinstance(spec, tuple | list) or not spec:
        raise InputError(
            f"{where} must be a string, a (row, column) tuple or a list of such tuples"
        )
    reads = []
    for part in parts:
        if not isinstance(part, tuple) or len(part) not in (2, 3):
            raise InputError(f"{where}: {part!r} is not (row, column) or (row, column, form)")
        row, column, form = part if len(part) == 3 else (*part, "")
        if isinstance(row, bool) or not isinstance(row, int) or not isinstance(column, int | str):
            raise InputError(
                f"{where}: {part!r} is not (row, column): the row is an integer, "
                "the column a number or a name"
            )
        _check_numbers(row, 0, "relative", where)
        _check_form(form, where)
        reads.append(Read(column, row, form))
    return Template(str(spec), place, tuple(reads), (), True, False)


def _check_form(form: Any, where: str) -> None:
    try:
        form_function(str(form))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def resolve_columns(template: Template, names: Sequence[str]) -> Template:
    """Replace column names by numbers, check that the columns exist, and set the text of Python specs.

    Parameters
    ----------
    template : Template
    names : sequence of str
        Names of the token columns.
    """
    reads = tuple(
        read._replace(column=_column_number(read, template, names)) for read in template.reads
    )
    if template.literals:
        return template._replace(reads=reads)
    heads = [
        f"{names[int(read.column)]}[{read.row}]" + (f".{read.form}" if read.form else "")
        for read in reads
    ]
    literals = ("|".join(heads) + "=", *["|"] * (len(reads) - 1), "")
    return template._replace(reads=reads, literals=literals)


def _column_number(read: Read, template: Template, names: Sequence[str]) -> int:
    if isinstance(read.column, str):
        if read.column in names:
            return list(names).index(read.column)
        raise InputError(
            f"{template.where} reads column {read.column!r} but {_describe_columns(names)}"
        )
    columns = [read.column, read.row] if read.mode == "indirect" else [read.column]
    for column in columns:
        if column >= len(names) or (column < 0 and read.mode not in FLAGS.values()):
            raise InputError(
                f"{template.where} reads column {column} but {_describe_columns(names)}"
            )
    return read.column


def _describe_columns(names: Sequence[str]) -> str:
    columns = "1 column" if len(names) == 1 else f"{len(names)} columns"
    listed = ", ".join(f"{name}({number})" for number, name in enumerate(names))
    return f"tokens have {columns}: {listed}"
