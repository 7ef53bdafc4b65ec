"""The command of this distribution and its line in ``kframe --help``. Imports nothing."""

from __future__ import annotations

from typing import Final

COMMANDS: Final = {"sim": "Simulate clusters with faults, and check invariants."}
