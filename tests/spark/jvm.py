"""JVM options of Spark in tests: processes run for seconds, so they start fast and compile little."""

from __future__ import annotations

from typing import Final

OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
#: For a driver, and for separate executors.
SETTINGS: Final = {"spark.driver.extraJavaOptions": OPTIONS, "spark.executor.extraJavaOptions": OPTIONS}
