"""The runbook has an entry for each warning, error and refusal of a live controller, and no other entry."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.architecture.source import ROOT
from tests.docs.log_messages import LogMessage, log_messages, messages_in

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


@pytest.mark.parametrize(
    "source, expected",
    [
        ('_log.warning("broker %d: %.1f s", b, s)', [("WARN", "broker …: … s")]),
        ('_log.error("a "\n  "b")', [("ERROR", "a b")]),
        ('_log.exception("failed")', [("ERROR", "failed")]),
        ('_log.log(level, "cut: %s", problem)', [("WARN", "cut: …")]),
        ('_log.info("ready")', []),
        ('_log.warning("%s", problem)', []),
        ('Template(WARNING, "{topic} was deleted")', [("WARN", "… was deleted")]),
        ('Template(INFO, "ready")', []),
        ('raise BadInput(f"no id: give {option}")', [("exit 2", "no id: give …")]),
        ('def risks():\n  """A docstring."""\n  yield f"id {x} is not a free id"', [("WARN", "id … is not a free id")]),
        ('def other():\n  yield f"id {x} is not a free id"', []),
    ],
)
def test_messages_of_a_module(source: str, expected: list[tuple[str, str]]) -> None:
    assert list(messages_in(source)) == expected
