"""Run commands over Spark Connect: ``python -m tests.spark.connect_client REMOTE < commands``.

This needs a separate process, since a process with a classic session cannot have a Connect session. Each input line has
a command's arguments in JSON. Each output line has its exit code, stdout and stderr in JSON.
"""

from __future__ import annotations

import json
import sys

from tests.cli.running import kframe


def main(remote: str) -> None:
    """Run the commands from stdin."""
    for line in sys.stdin:
        result = kframe(*json.loads(line), "--remote", remote)
        print(json.dumps([result.exit_code, result.stdout, result.stderr]), flush=True)
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    assert active is not None
    print(json.dumps(type(active).__module__))


if __name__ == "__main__":
    main(sys.argv[1])
