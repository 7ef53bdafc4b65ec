"""The record of a draw: the outcome of each mutant, the rate of each area, and the mutants that no test noticed."""

from __future__ import annotations

import platform
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from verification.mutants.mutant import Mutant, Result
from verification.mutants.session import Session

EQUIVALENT: Final = Path(__file__).with_name("equivalent.toml")
#: Titles of the parts of a page, by outcome.
_TITLES: Final = {"survived": "Missed", "killed since": "Noticed since", "equivalent": "Equivalent"}
_FIELDS: Final = ("file", "line", "function", "operator", "before", "after")


def record(session: Session, results: Mapping[Any, Sequence[tuple[Mutant, Result]]], command: str) -> dict[str, Any]:
    """Return the document of ``mutants.json``, the record."""
    reasons = equivalents()
    return {
        "command": command,
        "commit": session.commit,
        "limit_s": session.limit_s,
        "python": platform.python_version(),
        "machine": _machine(),
        "areas": [
            {
                "area": area.name,
                "package": area.package,
                "seed": session.seed(area),
                "mutants": sorted(
                    (row_of(*pair, reasons) for pair in pairs), key=lambda row: (row["file"], row["line"])
                ),
            }
            for area, pairs in results.items()
        ],
    }


def equivalents() -> dict[tuple[str, str, str], str]:
    """Return the reasons of ``equivalent.toml`` by file, line before and line after."""
    rows = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("equivalent", [])
    return {(row["file"], row["before"], row["after"]): row["reason"] for row in rows}


def row_of(mutant: Mutant, result: Result, reasons: Mapping[tuple[str, str, str], str]) -> dict[str, Any]:
    """Return a mutant with its outcome. The reason is the test that noticed it, or why it is equivalent."""
    outcome, reason = result.outcome, result.test
    if outcome == "survived" and (mutant.file, mutant.before, mutant.after) in reasons:
        outcome, reason = "equivalent", reasons[mutant.file, mutant.before, mutant.after]
    changed = {name: getattr(mutant, name) for name in _FIELDS}
    return {**changed, "outcome": outcome, "reason": reason, "tests": result.tests, "left_out": result.left_out}


def _machine() -> str:
    models = re.findall(r"^model name\s*: (.+)$", _read("/proc/cpuinfo"), re.MULTILINE)
    return f"{models[0] if models else platform.machine()}, {len(models)} cores, {platform.system()}"


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""


def rate(number: Mapping[str, int]) -> float | None:
    """Return the share of noticed mutants among those that ran and are not equivalent, None if there are none."""
    noticed = number["killed"] + number["timeout"]
    missed = number["survived"] + number["killed since"]
    return noticed / (noticed + missed) if noticed + missed else None


def page(document: Mapping[str, Any]) -> str:
    """Return ``docs/evidence/mutants.md`` for a record."""
    rows = [row for area in document["areas"] for row in area["mutants"]]
    lines = [
        "# Mutants that no test notices",
        "",
        f"Made by `{document['command']}` at {document['commit'][:8]}:",
        f"Python {document['python']}, {document['machine']}.",
        "cosmic-ray changes one operator, number or statement at a time in a copy of the tree; a test must fail. The",
        "commit and the area are the seed. [Run mutants](../howto/campaigns.md#run-mutants) describes which tests run.",
        "A mutant whose tests do not end is noticed. [mutants.json](mutants.json) has each mutant, and the test that",
        "failed.",
        "",
        "| area | drawn | noticed | of these without end | equivalent | missed | noticed since | not run | rate |",
        "|---|---|---|---|---|---|---|---|---|",
        *map(_area, document["areas"]),
        "",
        "The rate is the share of the noticed among those that ran and are not equivalent. *Noticed since* counts",
        "mutants that the tests missed, and that a newer test notices.",
        "",
        *_limited(rows, document["limit_s"]),
    ]
    lines += [line for outcome in _TITLES for line in entries(rows, outcome)]
    return "\n".join(lines).rstrip() + "\n"


def entries(rows: Iterable[Mapping[str, Any]], outcome: str) -> list[str]:
    """Return the part of a page with the mutants of an outcome, empty if there are none."""
    lines = [line for row in rows if row["outcome"] == outcome for line in _entry(row)]
    return [f"## {_TITLES[outcome]}", "", *lines] if lines else []


def _area(area: Mapping[str, Any]) -> str:
    number = Counter(row["outcome"] for row in area["mutants"])
    share = rate(number)
    cells = (
        f"`{area['package']}`",
        number.total(),
        number["killed"] + number["timeout"],
        number["timeout"],
        number["equivalent"],
        number["survived"],
        number["killed since"],
        number["not run"],
        "–" if share is None else f"{100 * share:.1f} %",
    )
    return f"| {' | '.join(map(str, cells))} |"


def _limited(rows: Iterable[Mapping[str, Any]], limit_s: float) -> list[str]:
    """Return the sentences on missed mutants whose tests did not all run."""
    missed = [row for row in rows if row["outcome"] in ("survived", "killed since")]
    limited = [row["left_out"] for row in missed if row["left_out"]]
    not_executed = sum(1 for row in missed if not row["tests"])
    return [
        f"The tests of a mutant run up to {limit_s:.0f} seconds, quickest first. Of the {len(missed)} missed mutants,",
        f"{len(limited)} have further tests: {sum(limited)} in sum, at most {max(limited, default=0)} for a mutant.",
        f"No test executes the line of {not_executed} of them.",
        "",
    ]


def _entry(row: Mapping[str, Any]) -> list[str]:
    where = f"- `{row['file']}:{row['line']}`" + (f", `{row['function']}`" if row["function"] else "")
    reason = f"{row['reason']}" if row["reason"] else _tests(row)
    changed = ["  ```diff", f"  - {row['before']}", f"  + {row['after']}", "  ```"]
    return [f"{where}: {reason}", "", *changed, ""]


def _tests(row: Mapping[str, Any]) -> str:
    if not row["tests"]:
        return "no test executes it"
    left_out = f", {row['left_out']} more did not run" if row["left_out"] else ""
    return f"{row['tests']} tests pass{left_out}"
