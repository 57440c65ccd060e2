"""Every code block of the README and of the documentation runs and prints what the page shows.

The blocks of a page run in order, in one folder and one namespace: a shell block may write a file that
a later Python block reads. The checks depend on the language of the block:

- ``python``: runs without an error or a warning. Comment lines directly below an expression or a
  loop at the left margin are its expected output: what it prints, or else its ``repr``.
- ``pycon``: a doctest.
- ``console``: lines that begin with ``$`` are commands; the lines below a command are its output.
- ``sh``: commands only.

A command is a pipe of ``seqlab`` (run in this process), ``echo``, ``cat``, ``tr`` and ``head``, and may end
with ``> file``. In expected output ``...`` matches anything and the amount of white space does not matter.
Numbers with a decimal point and percentages must agree within 5 % (libraries differ in the last digits,
and training stops within a tolerance); whole numbers must be equal. A block below
``<!-- no-run: reason -->`` does not run, but the options of its ``seqlab`` commands are checked.
"""

from __future__ import annotations

import ast
import doctest
import io
import math
import re
import shlex
import subprocess
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from seqlab.cli import app

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)$")
MARKER = re.compile(r"^\s*<!-- no-run: (?P<reason>\S.*?) -->\s*$")
NUMBER = r"\d+\.\d+(?:e[+-]?\d+)?|\d+(?=%)"
PIECE = re.compile(rf"\.\.\.|{NUMBER}")
RULE = re.compile("─{3,}")  # horizontal line of a table; its length depends on the cells
TOOLS = {"echo", "cat", "tr", "head"}
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUNNABLE = {"python", "pycon", "console", "sh"}


@dataclass
class Block:
    """One fenced block: its language, its text, and the line number where the text begins."""

    language: str
    text: str
    line: int
    reason: str | None = None  # why it does not run


def read_blocks(page: Path) -> list[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    blocks, number, reason = [], 0, None
    while number < len(lines):
        line = lines[number]
        fence = FENCE.match(line)
        if fence:
            close = next(
                k for k in range(number + 1, len(lines)) if lines[k].strip() == "```"
            )  # StopIteration if the fence is never closed
            indent = len(fence["indent"])
            text = "\n".join(one[indent:] for one in lines[number + 1 : close])
            language = fence["info"].split(" ")[0].strip()
            blocks.append(Block(language, text, number + 2, reason))
            number, reason = close + 1, None
            continue
        marker = MARKER.match(line)
        if marker:
            reason = marker["reason"]
        elif line.strip():
            reason = None
        number += 1
    return blocks


def run_page(page: Path, folder: Path) -> int:
    """Run the blocks of a page in a folder and return how many ran."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    n_run = 0
    for block in read_blocks(page):
        if block.language not in RUNNABLE:
            continue
        if block.reason is not None:
            for command in commands_of(block):
                check_options(command.text)
            continue
        where = f"{page.name}:{block.line}"
        if block.language == "python":
            run_python(block, namespace, where)
        elif block.language == "pycon":
            run_doctest(block, namespace, where)
        else:
            for command in commands_of(block):
                run_command(command, folder, where)
        n_run += 1
    return n_run


# Python.


def run_python(block: Block, namespace: dict[str, object], where: str) -> None:
    lines = block.text.splitlines()
    for statement in ast.parse(block.text).body:
        expected = _comment_below(lines, statement.end_lineno)
        source = ast.get_source_segment(block.text, statement) or ""
        # Empty lines in front, so that tracebacks show the line numbers of the page.
        shift = "\n" * (block.line + statement.lineno - 2)
        if not isinstance(statement, ast.Expr | ast.For) or expected is None:
            exec(compile(shift + _whole(lines, statement), where, "exec"), namespace)
            continue
        printed, value = io.StringIO(), None
        with redirect_stdout(printed):
            if isinstance(statement, ast.For):
                exec(compile(shift + source, where, "exec"), namespace)
            else:
                value = eval(compile(shift + source, where, "eval"), namespace)
        given = printed.getvalue() or f"{value!r}\n"
        check_output(expected, given, f"{where}: {source}")


def _whole(lines: list[str], statement: ast.stmt) -> str:
    """The lines of a statement, including its decorators."""
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(one.lineno for one in decorators)])
    return "\n".join(lines[first - 1 : statement.end_lineno])


def _comment_below(lines: list[str], end: int | None) -> str | None:
    found = []
    for line in lines[end or 0 :]:
        if not line.startswith("#"):
            break
        found.append(line[1:].removeprefix(" "))
    return "\n".join(found) + "\n" if found else None


def run_doctest(block: Block, namespace: dict[str, object], where: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, namespace, where, where, block.line)
    test.globs = namespace  # get_doctest copies it, but later blocks need the new names
    report = io.StringIO()
    runner = doctest.DocTestRunner(ApproximateChecker(), optionflags=FLAGS)
    runner.run(test, out=report.write, clear_globs=False)
    assert runner.failures == 0, report.getvalue()


def check_output(expected: str, given: str, where: str) -> None:
    if not agrees(expected, given):
        raise AssertionError(f"{where}\nexpected:\n{expected}\ngot:\n{given}")


def agrees(expected: str, given: str) -> bool:
    """Whether an output agrees with the page; the module docstring says what may differ."""
    shown, given = (RULE.sub("───", " ".join(text.split())) for text in (expected, given))
    pattern, numbers, at = "", [], 0
    for piece in PIECE.finditer(shown):
        pattern += re.escape(shown[at : piece.start()])
        at = piece.end()
        if piece[0] == "...":
            pattern += ".*?"
        else:
            numbers.append(float(piece[0]))
            pattern += f"({NUMBER})"
    found = re.fullmatch(pattern + re.escape(shown[at:]), given)
    if found is None:
        return False
    pairs = zip(numbers, map(float, found.groups()), strict=True)
    return all(math.isclose(a, b, rel_tol=0.05, abs_tol=0.02) for a, b in pairs)


class ApproximateChecker(doctest.OutputChecker):
    """The same comparison for doctests."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, got, optionflags) or agrees(want, got)


# Commands.


@dataclass
class Command:
    """A command line and its expected output, if the page shows it."""

    text: str
    expected: str | None = None


def commands_of(block: Block) -> list[Command]:
    commands: list[Command] = []
    shown = block.language == "console"
    is_continued = False  # the last line ended in a backslash
    for line in block.text.splitlines():
        code = _without_comment(line)
        if is_continued:
            commands[-1].text += " " + code.rstrip("\\").strip()
        elif shown and not line.startswith("$ "):
            assert commands, f"output before any command: {line!r}"
            commands[-1].expected = (commands[-1].expected or "") + line + "\n"
            continue
        elif code.strip():
            commands.append(Command(code.removeprefix("$ ").rstrip("\\").strip()))
        is_continued = code.rstrip().endswith("\\")
    return [command for command in commands if command.text]


def _without_comment(line: str) -> str:
    """The line without a ``# comment`` (at its beginning, or after two spaces)."""
    return re.split(r"(?:^|\s{2,})# ", line, maxsplit=1)[0]


def stages_of(text: str) -> tuple[list[list[str]], str | None]:
    """The commands of a pipe, and the file that receives its output."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|>")
    lexer.whitespace_split = True
    words = list(lexer)
    target = None
    if ">" in words:
        at = words.index(">")
        assert at == len(words) - 2, f"one file after > expected: {text}"
        words, target = words[:at], words[at + 1]
    stages: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            stages.append([])
        else:
            stages[-1].append(word)
    return stages, target


def run_command(command: Command, folder: Path, where: str) -> None:
    stages, target = stages_of(command.text)
    assert any(stage[0] == "seqlab" for stage in stages), f"{where}: no seqlab: {command.text}"
    data = ""
    for stage in stages:
        if stage[0] == "seqlab":
            result = CliRunner().invoke(app, stage[1:], input=data)
            assert result.exit_code == 0, f"{where}: {command.text}\n{result.output}"
            data = result.stdout
        else:
            assert stage[0] in TOOLS, f"{where}: {stage[0]} is not among {sorted(TOOLS)}"
            done = subprocess.run(stage, input=data, capture_output=True, text=True, check=True)
            data = done.stdout
    if target is not None:
        (folder / target).write_text(data, encoding="utf-8")
    elif command.expected is not None:
        check_output(command.expected.rstrip() + "\n", data.strip() + "\n", where)


def check_options(text: str) -> None:
    """Check that every option of the ``seqlab`` commands in a line exists."""
    for stage in stages_of(text)[0]:
        if not stage or stage[0] != "seqlab":
            continue
        command, words = get_command(app), stage[1:]
        while words and hasattr(command, "commands") and words[0] in command.commands:
            command, words = command.commands[words[0]], words[1:]
        known = {name for param in command.params for name in [*param.opts, *param.secondary_opts]}
        known |= {"-h", "--help", "--debug"}
        for word in words:
            if word.startswith("-") and word != "-" and not word[1:2].isdigit():
                assert word in known, f"{text}: option {word} does not exist"


# The tests.


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    run_page(page, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_has_a_language(page):
    for block in read_blocks(page):
        assert block.language not in ("", "bash", "shell", "py"), f"{page}:{block.line}"
        if block.language == "text":
            assert not re.search(r"^(\$ )?seqlab ", block.text, re.MULTILINE), block.text


def test_wrong_output_is_detected(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    for good, bad in (
        ("```python\n1 + 1\n# 2\n```\n", "```python\n1 + 1\n# 3\n```\n"),
        ("```python\nprint('a')\n# a\n```\n", "```python\nprint('a')\n# b\n```\n"),
        ("```python\n0.501\n# 0.5\n```\n", "```python\n0.6\n# 0.5\n```\n"),
        ("```pycon\n>>> 1 + 1\n2\n```\n", "```pycon\n>>> 1 + 1\n3\n```\n"),
        (
            "```console\n$ seqlab --version\nseqlab ...\n```\n",
            "```console\n$ seqlab --version\nother\n```\n",
        ),
        (
            "<!-- no-run: no file -->\n```sh\nseqlab train a -o b\n```\n",
            "<!-- no-run: no file -->\n```sh\nseqlab train a --utput b\n```\n",
        ),
    ):
        page.write_text(good, encoding="utf-8")
        run_page(page, tmp_path)
        page.write_text(bad, encoding="utf-8")
        with pytest.raises(AssertionError):
            run_page(page, tmp_path)


def test_blocks_share_namespace_and_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\nseqlab --version > v.txt\n```\n"
        "```python\nfrom pathlib import Path\ntext = Path('v.txt').read_text()\n```\n"
        "```pycon\n>>> text.split()[0]\n'seqlab'\n```\n",
        encoding="utf-8",
    )
    assert run_page(page, tmp_path) == 3
