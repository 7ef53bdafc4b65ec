"""The three control requests as data: the first version of each with each field (Kafka 3.9 message definitions)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kframe.model.arrays import Int64
from kframe.model.requests import ControlRequests
from kframe.wire.primitives import boolean, int32

#: Above every version: the request never has the field.
NEVER: Final = 1 << 15


class Layout(Struct, frozen=True):
    """The layout of the partitions in one version of a request (see ``kernels/_request_entries.pyx``)."""

    grouped: bool
    """Whether partitions are grouped by topic. Otherwise each entry has the topic's name."""
    compact: bool
    """Whether the version is flexible."""
    with_topic_ids: bool


class ControlApi(Struct, frozen=True):
    """One kind of control request. The fields after ``api_key`` are versions: the newest, and the first with each
    field."""

    name: str
    api_key: int
    newest: int
    grouped: int
    broker_epoch: int
    flexible: int
    topic_ids: int
    kraft_controller: int

    def layout(self, api_version: int) -> Layout:
        """The layout of partitions in ``api_version``."""
        return Layout(api_version >= self.grouped, api_version >= self.flexible, api_version >= self.topic_ids)

    def prefixes(self, api_version: int, requests: ControlRequests, broker_epochs: Int64, suffix: bytes) -> list[bytes]:
        """The first fields of every control request, for brokers of these epochs. ``suffix`` follows them.

        ``isKRaftController`` is false.
        """
        kraft_controller = boolean(False) if api_version >= self.kraft_controller else b""
        common = int32(requests.controller_id) + kraft_controller + int32(requests.controller_epoch)
        if api_version < self.broker_epoch:
            return [common + suffix] * len(broker_epochs)
        epochs = broker_epochs.astype(">i8").tobytes()
        return [common + epochs[start : start + 8] + suffix for start in range(0, len(epochs), 8)]


LEADER_AND_ISR: Final = ControlApi(
    "LeaderAndIsr", api_key=4, newest=7, grouped=2, broker_epoch=2, flexible=4, topic_ids=5, kraft_controller=7
)
STOP_REPLICA: Final = ControlApi(
    "StopReplica", api_key=5, newest=4, grouped=1, broker_epoch=1, flexible=2, topic_ids=NEVER, kraft_controller=4
)
UPDATE_METADATA: Final = ControlApi(
    "UpdateMetadata", api_key=6, newest=8, grouped=5, broker_epoch=5, flexible=6, topic_ids=7, kraft_controller=8
)
CONTROL_APIS: Final = {api.api_key: api for api in (LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA)}
