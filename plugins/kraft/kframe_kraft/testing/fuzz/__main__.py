"""The command line."""

from __future__ import annotations

import sys

from kframe_kraft.testing.fuzz.targets import CORPUS, targets
from kframe_simulator.fuzz import main

if __name__ == "__main__":
    sys.exit(main("kframe_kraft.testing.fuzz", targets, CORPUS))
