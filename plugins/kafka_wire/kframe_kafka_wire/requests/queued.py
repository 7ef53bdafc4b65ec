"""A request that waits in the queue of a broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kframe_kafka_wire.requests.content import UPDATE_METADATA, RequestContent

#: Weight of a request in addition to its partitions.
REQUEST_WEIGHT: Final[int] = 16


@dataclass(slots=True, eq=False)
class QueuedRequest:
    """A request in the queue."""

    controller_epoch: int
    api_key: int
    api_version: int
    chunks: tuple[bytes | memoryview, ...]
    content: RequestContent
    part: slice
    """The rows of ``content`` in this request."""
    queued: float
    topics: int
    """Number of topic indexes when it was encoded. It names no later topic."""

    @property
    def weight(self) -> int:
        """Its weight in the queue, in partitions."""
        partitions: int = self.part.stop - self.part.start
        return REQUEST_WEIGHT + partitions

    def unshare(self) -> None:
        """Copy bytes that it shares with requests to other brokers, except for UpdateMetadata, which is one object."""
        if self.content.api_key != UPDATE_METADATA:
            self.chunks = tuple(bytes(chunk) for chunk in self.chunks)
