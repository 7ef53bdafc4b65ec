"""The command line."""

from __future__ import annotations

import sys

from verification.fuzz import main
from verification.zookeeper.fuzz import CORPUS, targets

if __name__ == "__main__":
    sys.exit(main("verification.zookeeper.fuzz", targets, CORPUS))
