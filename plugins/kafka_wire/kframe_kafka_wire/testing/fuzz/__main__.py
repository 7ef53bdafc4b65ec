"""The command."""

from __future__ import annotations

import sys

from kframe.testing.fuzz import main
from kframe_kafka_wire.testing.fuzz.targets import CORPUS, targets

if __name__ == "__main__":
    sys.exit(main("kframe_kafka_wire.testing.fuzz", targets, CORPUS))
