"""Creates topics at a controller: one after another, at a fixed rate, and many partitions at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from queue import Empty, SimpleQueue
from typing import Any, Final

from kframe_kafka_wire.connections.broker import Target
from kframe_kafka_wire.connections.node import NodeConnection

_CREATE_TOPICS: Final = 19
_FACTOR: Final = 3
#: Connections that share the requests at a rate.
_CONNECTIONS: Final = 32
_TIMEOUT_MS: Final = 30_000


def connected(port: int) -> NodeConnection:
    """A connection to the controller."""
    return NodeConnection(Target("127.0.0.1", port, None, None, "benchmark"))


def create(client: NodeConnection, names: list[str], partitions: int = 1) -> float:
    """Create topics in one request. Returns the seconds until the response."""
    topics = [
        {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": _FACTOR,
            "assignments": [],
            "configs": [],
        }
        for name in names
    ]
    fields: dict[str, Any] = {"topics": topics, "timeout": _TIMEOUT_MS, "validate_only": False}
    begun = time.monotonic_ns()
    response = client.ask(_CREATE_TOPICS, fields)
    seconds = (time.monotonic_ns() - begun) / 1e9
    refused = [topic for topic in response["topics"] if topic["error_code"]]
    if refused:
        raise RuntimeError(f"a topic was not created: {refused[0]}")
    return seconds


def one_by_one(port: int, count: int) -> Iterator[float]:
    """Seconds of each of ``count`` creations, one after another."""
    with closing(connected(port)) as client:
        for number in range(count):
            yield create(client, [f"single-{number}"])


def at_rate(port: int, per_second: int, seconds: int, prefix: str = "rate") -> list[float]:
    """Seconds of each creation, from the time at which it was due to its response. Names begin with ``prefix``."""
    due: SimpleQueue[int] = SimpleQueue()
    taken: list[float] = []
    errors: list[BaseException] = []
    begun = time.monotonic()
    for number in range(per_second * seconds):
        due.put(number)

    def work() -> None:
        try:
            with closing(connected(port)) as client:
                while True:
                    number = due.get_nowait()
                    at = begun + 1 + number / per_second
                    time.sleep(max(at - time.monotonic(), 0))
                    create(client, [f"{prefix}-{number}"])
                    taken.append(time.monotonic() - at)
        except Empty:
            pass
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(_CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return taken


def many(port: int, topics: int, partitions: int) -> float:
    """Seconds to create topics with many partitions, a request each: Kafka refuses more than 10,000 records at once."""
    with closing(connected(port)) as client:
        return sum(create(client, [f"many-{number}"], partitions) for number in range(topics))
