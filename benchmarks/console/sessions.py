"""Sessions over HTTP beside a browser, as a process: ``python -m benchmarks.console.sessions PORT COUNT SECONDS``.

Each session asks for windows of rows over a connection of its own: it scrolls, or sorts or filters, and then reads for
a while. Prints the milliseconds and the status of each request as JSON.
"""

from __future__ import annotations

import json
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPResponse, RemoteDisconnected
from typing import Any, Final
from urllib.parse import urlencode

#: Mean seconds between two requests of a session.
READING_S: Final = 5.0
_SORTS: Final = ("", "topic", "-leader_epoch", "leader", "-partition_epoch,topic", "isr", "replicas")
_WINDOW: Final = 200
_TIMEOUT_S: Final = 60


def session(port: int, seed: int, seconds: float) -> list[tuple[float, int]]:
    """The milliseconds and the status of each request of a session."""
    chance = random.Random(seed)
    connection = HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    end = time.monotonic() + seconds
    query: dict[str, Any] = {"sort": ""}
    results: list[tuple[float, int]] = []
    while True:
        time.sleep(chance.expovariate(1 / READING_S))
        begun = time.monotonic()
        if begun > end:
            return results
        match chance.randrange(4):
            case 0:
                query = {"sort": chance.choice(_SORTS)}
            case 1:
                query = {"sort": chance.choice(_SORTS), "leader": chance.randrange(100)}
            case _:
                query = {**query, "first": chance.randrange(10_000)}
        response = _response(connection, f"/partitions?{urlencode({**query, 'format': 'json', 'count': _WINDOW})}")
        response.read()
        results.append((1_000 * (time.monotonic() - begun), response.status))


def _response(connection: HTTPConnection, path: str) -> HTTPResponse:
    """The response to a request. As a browser does, it asks again if the server has just closed the idle connection."""
    try:
        connection.request("GET", path)
        return connection.getresponse()
    except RemoteDisconnected:
        connection.close()
        connection.request("GET", path)
        return connection.getresponse()


def main() -> None:
    """Run all sessions, and print."""
    port, count, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    with ThreadPoolExecutor(count) as threads:
        sessions = [threads.submit(session, port, seed, seconds) for seed in range(count)]
        print(json.dumps([request for each in sessions for request in each.result()]))


if __name__ == "__main__":
    main()
