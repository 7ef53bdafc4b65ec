"""The command line."""

from __future__ import annotations

import sys

from kframe_simulator.fuzz import main
from kframe_zookeeper.testing.fuzz import CORPUS, targets

if __name__ == "__main__":
    sys.exit(main("kframe_zookeeper.testing.fuzz", targets, CORPUS))
