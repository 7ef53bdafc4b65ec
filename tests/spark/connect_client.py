"""Commands over Spark Connect, one after another: ``python -m tests.spark.connect_client REMOTE < commands``.

In a process of its own, since one that has a classic session can have no other kind. A line of JSON in is a command's
arguments, a line of JSON out its exit code, what it printed and what it said.
"""

from __future__ import annotations

import json
import sys

from tests.cli.running import kframe


def main(remote: str) -> None:
    """Run what stdin has."""
    for line in sys.stdin:
        done = kframe(*json.loads(line), "--remote", remote)
        print(json.dumps([done.exit_code, done.stdout, done.stderr]), flush=True)
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    assert active is not None
    print(json.dumps(type(active).__module__))


if __name__ == "__main__":
    main(sys.argv[1])
