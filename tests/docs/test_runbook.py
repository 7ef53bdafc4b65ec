"""The runbook has an entry for each warning, error and refusal of a live controller, and no other entry."""

from __future__ import annotations

import re
from typing import Final

from tests.architecture.source import ROOT
from tests.docs.log_messages import LogMessage, log_messages

RUNBOOK: Final = ROOT / "docs" / "reference" / "runbook.md"
#: Level, message, meaning and action.
_ENTRY: Final = re.compile(r"^\| (WARN|ERROR|exit 2) \| `([^`]+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def entries() -> list[LogMessage]:
    """The entries of the runbook."""
    return [LogMessage(entry[1], entry[2]) for entry in _ENTRY.finditer(RUNBOOK.read_text())]


def test_each_message_has_an_entry() -> None:
    assert log_messages() - set(entries()) == set()


def test_no_entry_is_stale_or_repeated() -> None:
    assert set(entries()) - log_messages() == set()
    assert len(entries()) == len(set(entries()))


def test_each_row_is_an_entry() -> None:
    rows = [line for line in RUNBOOK.read_text().splitlines() if line.startswith(("| WARN", "| ERROR", "| exit 2"))]
    assert len(rows) == len(entries())
