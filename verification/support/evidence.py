"""Facts of a run of a campaign: machine, commit and command, in its record and on its page in ``docs/evidence``."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from typing import Any


def run_facts(command: str) -> dict[str, Any]:
    """The facts of a run that starts now, for its record."""
    load = os.getloadavg()[0]
    machine = (
        f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} cores, Python"
        f" {platform.python_version()}, load average {load:.0f} at the start"
    )
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    return {"machine": machine, "commit": git.stdout.strip(), "command": command}


def facts_lines(run: Mapping[str, Any]) -> list[str]:
    """The lines of a page with the facts in a record, and its notes."""
    return [
        f"- Machine: {run['machine']}.",
        f"- Commit: {run['commit']}. It may have another id since.",
        f"- Command: `{run['command']}`.",
        *(f"- {note}" for note in run.get("notes", ())),
    ]
