"""Warnings and errors in the logs of a controller, and the entries of the runbook that explain them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

RUNBOOK: Final = Path(__file__).parents[3] / "docs" / "reference" / "runbook.md"
_ENTRY: Final = re.compile(r"^\| (WARN|ERROR) \| `([^`]+)` \|", re.MULTILINE)
#: Kafka's layout, the prefix, the message and the logger.
_LINE: Final = re.compile(r"^\[[-0-9 :,]+\] (WARN|ERROR|FATAL) \[[^]]*\] (.*) \(([\w.$]+)\)$")
#: The logger of the state change log. Only there an entry without a word is a message.
_CHANGES: Final = "kframe.statechange"
_UNEXPECTED: Final = "Traceback (most recent call last)"


class Warnings(NamedTuple):
    """Lines of a level with the same entry of the runbook."""

    level: str
    entry: str
    """The message in the runbook. Empty: no entry explains the lines."""
    lines: int
    example: str


class Runbook:
    """The entries of the runbook of a clone."""

    def __init__(self, text: str) -> None:
        #: Level, message, and the pattern of the message.
        self.entries: Final = [
            (level, entry, re.compile(".*".join(map(re.escape, entry.split("…")))))
            for level, entry in _ENTRY.findall(text)
        ]

    def entry_of(self, level: str, message: str, logger: str) -> str:
        """The entry that matches most characters of a message literally. Empty without one."""
        matching = [
            entry
            for of_level, entry, pattern in self.entries
            if of_level == level and pattern.fullmatch(message) and (re.search(r"\w", entry) or logger == _CHANGES)
        ]
        return max(matching, key=lambda entry: len(entry.replace("…", "")), default="")

    def explained(self, lines: Iterable[str]) -> list[Warnings]:
        """The warnings, errors and tracebacks of a log by entry, most frequent first."""
        groups: dict[tuple[str, str], tuple[int, str]] = {}
        for level, entry, line in self._matched(lines):
            count, example = groups.get((level, entry), (0, line))
            groups[level, entry] = count + 1, example
        rows = [Warnings(level, entry, *values) for (level, entry), values in groups.items()]
        return sorted(rows, key=lambda row: -row.lines)

    def _matched(self, lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        for line in lines:
            if match := _LINE.match(line):
                level, message, logger = match.groups()
                yield level, self.entry_of(level, message, logger), line
            elif line.startswith(_UNEXPECTED):
                yield "ERROR", "", line


def unexplained(rows: Sequence[Warnings]) -> list[Warnings]:
    """The rows without an entry."""
    return [row for row in rows if not row.entry]
