"""Checks a selector in a child process, so that native code that crashes or hangs is only reported.

The child appends a JSON line to a file after each check, because a plugin may print to standard output. The child
crashed in the first check without a line. It builds its own registry, so it sees only installed plugins and the plugins
directory.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from kframe.registry.checks import Finding, check_doc, check_name, checks_of, run_checks
from kframe.registry.registry import build_registry

#: The timeout of all checks of a selector; they take well under a second.
TIMEOUT_S: Final = 60.0


def check_isolated(
    name: str, disabled: Collection[str] = (), plugins_dir: Path | None = None, timeout_s: float = TIMEOUT_S, *,
    row_by_row: bool = False,
) -> list[Finding]:  # fmt: skip
    """Run all checks (``run_checks``) on the selector called ``name`` in a child process; return a finding for each.

    The check during which the child crashed or was stopped reports that as its problem; later checks report "not run".
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "findings.jsonl"
        report.touch()
        settings = {
            "selector": name,
            "disabled": list(disabled),
            "plugins_dir": None if plugins_dir is None else str(plugins_dir.resolve()),
            "report": str(report),
            "row_by_row": row_by_row,
        }
        command = [sys.executable, "-m", "kframe.registry.isolated", json.dumps(settings)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout_s)
            end = _end(done)
        except subprocess.TimeoutExpired:
            end = f"the process was stopped after {timeout_s:g} s"
        findings = [Finding(**json.loads(line)) for line in report.read_text().splitlines()]
    for check in checks_of(row_by_row)[len(findings) :]:
        findings.append(Finding(check_name(check), check_doc(check), end))
        end = "not run"
    return findings


def main(argument: str) -> None:
    """Run the checks in the child; ``argument`` has the settings of ``check_isolated`` as JSON."""
    settings: dict[str, Any] = json.loads(argument)
    plugins_dir = Path(settings["plugins_dir"]) if settings["plugins_dir"] is not None else None
    registry = build_registry(settings["disabled"], plugins_dir)
    name = settings["selector"]
    kinds, row_by_row = registry.selectors[name].kinds, settings["row_by_row"]
    with Path(settings["report"]).open("a") as report:
        for finding in run_checks(lambda: registry.selector(name), kinds, row_by_row=row_by_row):
            report.write(json.dumps(asdict(finding)) + "\n")
            report.flush()


def _end(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode < 0:
        return f"the process crashed: {signal.Signals(-done.returncode).name}"
    last = done.stderr.strip().splitlines()[-1:]
    return f"the process ended with code {done.returncode}" + "".join(f": {line}" for line in last)


if __name__ == "__main__":
    main(sys.argv[1])
