"""The fenced code blocks of the pages, and the commands in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.architecture.source import ROOT, tracked_files

_FENCE: Final = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<language>[^\n`]*)\n(?P<body>.*?)^(?P=indent)(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
#: A first line with a file name alone: the reader saves the block in this file.
_FILE: Final = re.compile(r"^(?:#|//|--) (?P<name>[\w./-]+\.\w+)$", re.MULTILINE)
_HEREDOC: Final = re.compile(r"<<-?\s*['\"]?(?P<end>\w+)['\"]?")


@dataclass(frozen=True, slots=True)
class Block:
    """A code block: page relative to the root, line of its fence, language and text."""

    page: str
    line: int
    language: str
    text: str

    @property
    def location(self) -> str:
        """Page and line."""
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str | None:
        """Name of the file that the block shows, None for any other block."""
        match = _FILE.match(self.text)
        return None if match is None else match["name"]


@dataclass(frozen=True, slots=True)
class Step:
    """A shell command of a block, and its output if the page shows it."""

    command: str
    output: str | None


def pages() -> list[Path]:
    """Return all pages for users and contributors. The change log names commands of earlier versions."""
    folders = ("docs", "deploy", "plugins", "simulator")
    return [
        path
        for path in tracked_files(".md")
        if (path.parent == ROOT and path.name != "CHANGELOG.md") or path.relative_to(ROOT).parts[0] in folders
    ]


def blocks(page: Path) -> list[Block]:
    """Return the code blocks of a page in order. Directives of the site such as ``{toctree}`` are none."""
    text = page.read_text()
    name = str(page.relative_to(ROOT))
    matches = [match for match in _FENCE.finditer(text) if not match["language"].startswith("{")]
    return [
        Block(name, text.count("\n", 0, match.start()) + 1, match["language"].strip(), _dedent(match))
        for match in matches
    ]


def _dedent(match: re.Match[str]) -> str:
    indent = len(match["indent"])
    return "".join(line[indent:] for line in match["body"].splitlines(keepends=True))


def steps(block: Block) -> list[Step]:
    """Return the commands of a block with language ``sh`` or ``console``; comments and empty lines are none.

    In ``console`` a command starts with ``$`` and continues with ``>``; the lines below it are its output.
    """
    if block.language == "sh":
        return [Step(command, None) for command in _commands(block.text.splitlines())]
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    return [_console_step(part.splitlines()) for part in parts]


def _console_step(lines: list[str]) -> Step:
    count = 1
    while count < len(lines) and lines[count].startswith("> "):
        count += 1
    command = "\n".join([lines[0], *(line.removeprefix("> ") for line in lines[1:count])])
    return Step(command, "\n".join(lines[count:]))


def _commands(lines: list[str]) -> Iterator[str]:
    pending: list[str] = []
    for line in lines:
        if not pending and (not line.strip() or line.lstrip().startswith("#")):
            continue
        pending.append(line)
        if not _is_open(pending):
            yield "\n".join(pending)
            pending = []
    if pending:
        yield "\n".join(pending)


def _is_open(lines: list[str]) -> bool:
    """Return whether a command continues: after a backslash, in quotes or in a here document."""
    heredoc = _HEREDOC.search(lines[0])
    if heredoc is not None:
        return lines[-1] != heredoc["end"] or len(lines) == 1
    if lines[-1].endswith("\\"):
        return True
    try:
        shlex.split("\n".join(lines), comments=True)
    except ValueError:
        return True
    return False
