"""Values as texts of cells."""

from __future__ import annotations

from typing import Final

#: Longest text of a cell: names come from the cluster.
TEXT_MAX: Final = 300


def cell_text(value: object, longest: int = TEXT_MAX) -> str:
    """A value as text: integers with separators, lists with commas, a dash for None. Long texts are cut."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    plain = f"{value:,}" if isinstance(value, int) else str(value)
    if isinstance(value, list | tuple):
        plain = ", ".join(map(str, value))
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"
