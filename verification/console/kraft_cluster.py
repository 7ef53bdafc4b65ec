"""A real Kafka cluster with records, for tests of the console."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from verification.kraft.kafka_nodes import KraftCluster, KraftOptions
from verification.kraft.kafka_tools import KafkaTools

#: The records of topic ``orders``, and the bytes of each.
RECORDS: Final = 200
RECORD_BYTES: Final = 1_000


@contextmanager
def cluster_with_records(version: str, folder: Path, tools: KafkaTools) -> Iterator[KraftCluster]:
    """Two brokers, the first also the controller. Both have topic ``orders``, and ``unused``, which has no records."""
    with KraftCluster(folder, KraftOptions(version, brokers=2)) as cluster:
        for topic in ("orders", "unused"):
            cluster.admin(tools, "kafka-topics", "--create", "--topic", topic, "--replica-assignment", "1:2")
        cluster.produce(tools, "orders", RECORDS, RECORD_BYTES)
        yield cluster
