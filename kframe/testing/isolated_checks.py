"""Checks a native offer in a child process, so that native code that crashes or hangs is only reported.

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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeAlias

from kframe.registry.registry import Registry, build_registry
from kframe.registry.specs import CostTermSpec, GoalSpec, SelectorSpec
from kframe.testing.placement_checks import PLACEMENT_CHECKS, run_placement_checks
from kframe.testing.selector_checks import CHECKS, Finding, check_doc, check_name, run_checks

#: Offers that are checked without kframe-simulator.
CheckedSpec: TypeAlias = SelectorSpec | CostTermSpec | GoalSpec
#: The timeout of all checks of an offer; they take well under a second.
TIMEOUT_S: Final = 60.0


def check_isolated(
    name: str,
    disabled: Collection[str] = (),
    plugins_dir: Path | None = None,
    timeout_s: float = TIMEOUT_S,
    *,
    kind: type[CheckedSpec] = SelectorSpec,
) -> list[Finding]:
    """Run all checks on the offer called ``name`` in a child process; return a finding for each.

    The offer is a selector (``run_checks``), or by ``kind`` a cost term or goal (``run_placement_checks``). The check
    during which the child crashed or was stopped reports that as its problem; later checks report "not run".
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "findings.jsonl"
        report.touch()
        settings = {
            "kind": kind.__name__,
            "name": name,
            "disabled": list(disabled),
            "plugins_dir": None if plugins_dir is None else str(plugins_dir.resolve()),
            "report": str(report),
        }
        command = [sys.executable, "-m", "kframe.testing.isolated_checks", json.dumps(settings)]
        try:
            completed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout_s)
            outcome = _describe_exit(completed)
        except subprocess.TimeoutExpired:
            outcome = f"the process was stopped after {timeout_s:g} s"
        findings = [Finding(**json.loads(line)) for line in report.read_text().splitlines()]
    checks: Sequence[Callable[..., None]] = CHECKS if kind is SelectorSpec else PLACEMENT_CHECKS
    for check in checks[len(findings) :]:
        findings.append(Finding(check_name(check), check_doc(check), outcome))
        outcome = "not run"
    return findings


def findings_of(registry: Registry, spec: CheckedSpec) -> Iterator[Finding]:
    """Run all checks of an offer in this process."""
    if isinstance(spec, CostTermSpec):
        return run_placement_checks(lambda: registry.cost_term(spec.name))
    if isinstance(spec, GoalSpec):
        return run_placement_checks(lambda: registry.goal(spec.name))
    return run_checks(lambda: registry.selector(spec.name), spec.kinds)


def main(argument: str) -> None:
    """Run the checks in the child; ``argument`` has the settings of ``check_isolated`` as JSON."""
    settings: dict[str, Any] = json.loads(argument)
    plugins_dir = Path(settings["plugins_dir"]) if settings["plugins_dir"] is not None else None
    registry = build_registry(settings["disabled"], plugins_dir)
    offers: Mapping[str, Mapping[str, CheckedSpec]] = {
        SelectorSpec.__name__: registry.selectors,
        CostTermSpec.__name__: registry.cost_terms,
        GoalSpec.__name__: registry.goals,
    }
    spec = offers[settings["kind"]][settings["name"]]
    with Path(settings["report"]).open("a") as report:
        for finding in findings_of(registry, spec):
            report.write(json.dumps(asdict(finding)) + "\n")
            report.flush()


def _describe_exit(completed: subprocess.CompletedProcess[str]) -> str:
    if completed.returncode < 0:
        return f"the process crashed: {signal.Signals(-completed.returncode).name}"
    last = completed.stderr.strip().splitlines()[-1:]
    return f"the process ended with code {completed.returncode}" + "".join(f": {line}" for line in last)


if __name__ == "__main__":
    main(sys.argv[1])
