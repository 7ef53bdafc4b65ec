"""Measure all limits, and write their records and the performance page: ``python -m benchmarks.limits``.

Takes about ten minutes on an idle machine.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from benchmarks.limits import failure_cost, processes, roofline
from benchmarks.records import RESULTS
from benchmarks.report import plots

if __name__ == "__main__":
    today = datetime.now(UTC).date()
    for name, measure in (("roofline", roofline.main), ("own-work", failure_cost.main), ("processes", processes.main)):
        if code := measure(["--out", str(RESULTS / f"{today}-{name}.json")]):
            sys.exit(code)
    sys.exit(plots.main([]))
