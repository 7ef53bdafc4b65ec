"""Escaped HTML: texts, tables, and bars of loads as SVG."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

#: Longest text of a cell: names come from the cluster.
TEXT_MAX: Final = 300
#: Longest value of a fact.
_FACT_MAX: Final = 10_000
_BAR: Final = 180
_LABEL: Final = 120
_NUMBERS: Final = 260
_ROW: Final = 22
#: Colours of the plots in ``docs/plots``: the measured, and what it is compared with.
BEFORE, AFTER = "#b9c3c9", "#2f6f8f"

STYLE: Final = f"""
body {{ color: #222; font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }}
h1 {{ font-size: 1.5rem; }} h2 {{ border-bottom: 1px solid #e4e8ea; font-size: 1.15rem; margin-top: 2rem; }}
table {{ border-collapse: collapse; }} caption {{ text-align: left; }}
th, td {{ border-bottom: 1px solid #e4e8ea; max-width: 40rem; padding: .15rem .7rem .15rem 0; text-align: left;
  vertical-align: top; overflow-wrap: break-word; }}
td.number, th.number {{ text-align: right; }} section {{ overflow-x: auto; }}
.summary {{ font-size: 1.15rem; font-weight: 600; }}
.error {{ color: #b0413e; font-weight: 600; }} .warning {{ color: #8a6d3b; font-weight: 600; }}
.note, svg text {{ fill: #6b757c; }} p.note {{ color: #6b757c; }}
svg {{ font: 11px system-ui, sans-serif; }} .pictures {{ display: flex; flex-wrap: wrap; gap: 1rem; }}
.before {{ fill: {BEFORE}; }} .after {{ fill: {AFTER}; }}
fieldset {{ border: 1px solid {BEFORE}; }} label {{ display: block; margin: .5rem 0; }}
input[type=text], textarea {{ border: 0; border-bottom: 1px solid #222; font: inherit; width: 24rem; }}
"""


def text(value: object, longest: int = TEXT_MAX) -> str:
    """A value as escaped text: integers with separators, lists with commas, a dash for None. Long texts are cut."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    plain = f"{value:,}" if isinstance(value, int) else str(value)
    if isinstance(value, list):
        plain = ", ".join(map(str, value))
    return html.escape(plain if len(plain) <= longest else plain[: longest - 1] + "…")


def table(name: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A table with the id ``name``; ``columns`` are keys of the rows. An empty table has its heading only."""
    listed = list(rows)
    numeric = {name for name in columns if any(isinstance(row[name], int) for row in listed)}
    heading = "".join(f"<th{_number(column in numeric)}>{text(column.replace('_', ' '))}</th>" for column in columns)
    body = "".join(table_row(columns, row) for row in listed)
    return f'<table id="{html.escape(name)}"><thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table>'


def table_row(columns: Sequence[str], row: Mapping[str, Any]) -> str:
    """A row of a table."""
    cells = (f"<td{_number(isinstance(row[name], int))}>{text(row[name])}</td>" for name in columns)
    return f"<tr>{''.join(cells)}</tr>\n"


def facts(name: str, rows: Iterable[tuple[str, object]]) -> str:
    """A table of names and values."""
    body = "".join(f"<tr><th>{text(key)}</th><td>{text(value, _FACT_MAX)}</td></tr>" for key, value in rows)
    return f'<table id="{html.escape(name)}"><tbody>{body}</tbody></table>'


def bars(title: str, rows: Sequence[tuple[str, int, int]]) -> str:
    """A picture: for each label a bar of the load before and, below it, a bar of the load after."""
    load_max = max((max(before, after) for _, before, after in rows), default=0) or 1
    width, height = _LABEL + _BAR + _NUMBERS, _ROW * len(rows) + 4
    marks = []
    for index, (label, before, after) in enumerate(rows):
        y = _ROW * index + 4
        tooltip = f"{text(label)}: {before:,} before, {after:,} after"
        marks.append(
            f'<g><title>{tooltip}</title><text x="{_LABEL - 6}" y="{y + 12}" text-anchor="end">{_clipped(label)}</text>'
            + "".join(
                f'<rect class="{kind}" x="{_LABEL}" y="{y + offset}" width="{_BAR * load / load_max:.1f}" height="8"/>'
                for kind, load, offset in (("before", before, 0), ("after", after, 9))
            )
            + f'<text x="{_LABEL + _BAR + 6}" y="{y + 12}">{before:,} → {after:,}</text></g>\n'
        )
    return (
        f'<figure><figcaption>{text(title)}</figcaption><svg role="img" aria-label="{text(title)}" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">{"".join(marks)}</svg>'
        "</figure>"
    )


def _clipped(label: str) -> str:
    return html.escape(label if len(label) <= 18 else label[:17] + "…")


def _number(numeric: bool) -> str:
    return ' class="number"' if numeric else ""
