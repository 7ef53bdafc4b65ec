"""The record of a draw: the outcome of each mutant, the rate of each area, and the mutants that no test noticed."""

from __future__ import annotations

import platform
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from verification.mutants.session import Dumped, Session

EQUIVALENT: Final = Path(__file__).with_name("equivalent.toml")
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) ([^ \n]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A drawn mutant: the changed line, from 1, of a file, its function, and the outcome of the tests.

    ``outcome`` is ``killed``, ``timeout``, ``survived``, ``equivalent``, ``incompetent`` or ``not run``. ``reason`` is
    the test that failed, or why the mutant is equivalent.
    """

    file: str
    line: int
    function: str
    operator: str
    before: str
    after: str
    outcome: str
    reason: str


def mutants(dumped: Iterable[Dumped]) -> list[Mutant]:
    """Return the drawn mutants by file and line."""
    reasons = equivalents()
    return sorted((_mutant(*pair, reasons) for pair in dumped), key=lambda mutant: (mutant.file, mutant.line))


def equivalents() -> dict[tuple[str, str, str], str]:
    """Return the reasons of ``equivalent.toml`` by file, line before and line after."""
    rows = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("equivalent", [])
    return {(row["file"], row["before"], row["after"]): row["reason"] for row in rows}


def _mutant(item: dict[str, Any], result: dict[str, Any] | None, reasons: Mapping[tuple[str, str, str], str]) -> Mutant:
    (mutation,) = item["mutations"]
    output = (result or {}).get("output") or ""
    lines = ((result or {}).get("diff") or "").splitlines()
    before, after = (
        " / ".join(line[1:].strip() for line in lines if line[0:1] == sign and line[0:3] not in ("---", "+++"))
        for sign in "-+"
    )
    outcome, reason = "not run", ""
    if result is not None:
        outcome = result["test_outcome"] or result["worker_outcome"]
        failed = _FAILED.search(output)
        reason = failed[1] if failed else ""
    if outcome == "killed" and output == "timeout":
        outcome = "timeout"
    if outcome == "survived" and (mutation["module_path"], before, after) in reasons:
        outcome, reason = "equivalent", reasons[mutation["module_path"], before, after]
    return Mutant(
        mutation["module_path"],
        mutation["start_pos"][0],
        mutation["definition_name"] or "",
        mutation["operator_name"].removeprefix("core/"),
        before,
        after,
        outcome,
        reason,
    )


def counts(sampled: Sequence[Mutant]) -> dict[str, int]:
    """Return the number of mutants of each outcome."""
    return dict(sorted(Counter(mutant.outcome for mutant in sampled).items()))


def rate(sampled: Sequence[Mutant]) -> float | None:
    """Return the share of noticed mutants among those that are not equivalent, None before all have run."""
    number = counts(sampled)
    if "not run" in number:
        return None
    noticed = number.get("killed", 0) + number.get("timeout", 0)
    missed = number.get("survived", 0)
    return round(noticed / (noticed + missed), 4) if noticed + missed else None


def record(results: Sequence[tuple[Session, Sequence[Mutant]]], command: str) -> dict[str, Any]:
    """Return the document of ``docs/evidence/mutants.json``."""
    return {
        "command": command,
        "python": platform.python_version(),
        "machine": _machine(),
        "areas": [
            {
                "area": session.area.name,
                "package": session.area.package,
                "tests": session.area.tests,
                "commit": session.commit,
                "seed": session.seed,
                "drawn": len(sampled),
                "outcomes": counts(sampled),
                "rate": rate(sampled),
                "mutants": [{name: getattr(mutant, name) for name in Mutant.__slots__} for mutant in sampled],
            }
            for session, sampled in results
        ],
    }


def _machine() -> str:
    models = re.findall(r"^model name\s*: (.+)$", _read("/proc/cpuinfo"), re.MULTILINE)
    return f"{models[0] if models else platform.machine()}, {len(models)} cores, {platform.system()}"


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""


def page(document: Mapping[str, Any]) -> str:
    """Return ``docs/evidence/mutants.md`` for a record."""
    lines = [
        "# Mutants that no test notices",
        "",
        f"Made by `{document['command']}`: Python {document['python']}, {document['machine']}. cosmic-ray changes one",
        "operator, number or statement at a time in a copy of the tree; a test of the area must fail. The seed is the",
        "commit and the area. Mutants of annotations are not drawn. A mutant whose tests do not end is noticed.",
        "[mutants.json](mutants.json) has each mutant, and the test that failed.",
        "",
        "| area | commit | drawn | noticed | of these without end | equivalent | not run | missed | rate |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for area in document["areas"]:
        number = Counter(area["outcomes"])
        cells = (
            f"`{area['package']}`",
            area["commit"][:8],
            area["drawn"],
            number["killed"] + number["timeout"],
            number["timeout"],
            number["equivalent"],
            number["not run"] + number["incompetent"],
            number["survived"],
            "–" if area["rate"] is None else f"{100 * area['rate']:.1f} %",
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += ["", "The rate is the share of the noticed among those that are not equivalent, once all have run.", ""]
    for outcome, title in (("survived", "Missed"), ("equivalent", "Equivalent")):
        rows = [row for area in document["areas"] for row in area["mutants"] if row["outcome"] == outcome]
        if rows:
            lines += [f"## {title}", ""] + [line for row in rows for line in _entry(row)]
    return "\n".join(lines).rstrip() + "\n"


def _entry(row: Mapping[str, Any]) -> list[str]:
    where = f"- `{row['file']}:{row['line']}`" + (f", `{row['function']}`" if row["function"] else "")
    reason = f"  {row['reason']}" if row["reason"] else ""
    changed = ["  ```diff", f"  - {row['before']}", f"  + {row['after']}", "  ```"]
    return [f"{where}:{reason}", "", *changed, ""]
