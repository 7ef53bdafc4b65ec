"""The command that this distribution adds to kframe. The list of commands reads it, so it imports nothing slow."""

from __future__ import annotations

from typing import Final

COMMANDS: Final = {"console": "Show a cluster in the browser: overview, partitions, predictions and plans."}
"""The command ``kframe console``. Its module imports what it needs on first use."""
