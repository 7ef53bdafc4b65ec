"""The metadata log in responses: topic ``__cluster_metadata``, which has a single partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kframe.plugin import counted
from kframe_kafka_wire.protocol.errors import WireError

TOPIC: Final = "__cluster_metadata"
#: The id of the topic, AAAAAAAAAAAAAAAAAAAAAQ.
TOPIC_ID: Final = bytes(15) + b"\x01"


def only_partition(api: str, topics: Sequence[Mapping[str, Any]], number: str) -> Mapping[str, Any]:
    """The only partition of the only topic in a response to ``api``. Raises WireError for any other response.

    ``number`` names the field that has the partition's number.
    """
    partitions: list[Mapping[str, Any]] = [partition for topic in topics for partition in topic["partitions"]]
    if len(partitions) != 1 or partitions[0][number] != 0:
        raise WireError(f"{api}: found {counted(len(partitions), 'partition')}, expected partition 0 of {TOPIC}")
    return partitions[0]
