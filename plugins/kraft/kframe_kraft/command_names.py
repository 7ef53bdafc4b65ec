"""The commands of this distribution and their lines in ``kframe --help``. Imports nothing."""

from __future__ import annotations

from typing import Final

COMMANDS: Final = {
    "kraft": "Compare the metadata logs of controllers, and recover a lost quorum.",
    "log": "Show the metadata log of a KRaft cluster, and the cluster at any offset.",
}
