"""The command line."""

from __future__ import annotations

import sys

from verification.fuzz import main
from verification.kafka_wire.fuzz.targets import CORPUS, targets

if __name__ == "__main__":
    sys.exit(main("verification.kafka_wire.fuzz", targets, CORPUS))
