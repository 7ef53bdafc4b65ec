"""The brokers before and after a what-if."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from kframe.model.arrays import Int32
from kframe.model.ids import Api
from kframe.pages.figures import bars_figure
from kframe.pages.parts import BarsPart, FactsPart, Heading, Part, TablePart
from kframe.pages.shown import Tabular
from kframe.whatif.results.health import ClusterHealth
from kframe.whatif.results.traffic import Traffic

#: Column name of each kind of request.
API_COLUMNS: Final = {
    Api.LEADER_AND_ISR: "leader_and_isr",
    Api.UPDATE_METADATA: "update_metadata",
    Api.STOP_REPLICA: "stop_replica",
}
#: Most brokers that a page lists and pictures.
_SHOWN: Final = 40
_LISTED: Final = (
    "broker_id",
    "rack",
    "registered_before",
    "registered_after",
    "leaders_before",
    "leaders_after",
    "in_sync_replicas_before",
    "in_sync_replicas_after",
    "replicas",
)


class BrokerRecord(Struct):
    """The load of a broker before and after, and the requests that it is sent in ZooKeeper mode. Null is unknown."""

    broker_id: int
    rack: str | None
    registered_before: bool
    registered_after: bool
    leaders_before: int
    leaders_after: int
    preferred_leaders: int
    replicas_before: int
    replicas: int
    in_sync_replicas_before: int
    in_sync_replicas_after: int
    requests: int | UnsetType = UNSET
    bytes: int | UnsetType | None = UNSET
    leader_and_isr_requests: int | UnsetType = UNSET
    leader_and_isr_partitions: int | UnsetType = UNSET
    leader_and_isr_bytes: int | UnsetType | None = UNSET
    update_metadata_requests: int | UnsetType = UNSET
    update_metadata_partitions: int | UnsetType = UNSET
    update_metadata_bytes: int | UnsetType | None = UNSET
    stop_replica_requests: int | UnsetType = UNSET
    stop_replica_partitions: int | UnsetType = UNSET
    stop_replica_bytes: int | UnsetType | None = UNSET


class OutcomeBrokers(Tabular, Struct, frozen=True, eq=False):
    """The ``b`` brokers of an outcome, ascending by id. ``operation`` names what was done, in words."""

    operation: str
    broker_ids: Int32
    racks: tuple[str | None, ...]
    before: ClusterHealth
    after: ClusterHealth
    traffic: Mapping[Api, Traffic]

    def __len__(self) -> int:
        return len(self.broker_ids)

    def records(self) -> Iterator[BrokerRecord]:
        """The load of each broker before and after, and in ZooKeeper mode the requests to it."""
        before, after = self.before, self.after
        for index, broker_id in enumerate(self.broker_ids.tolist()):
            record = BrokerRecord(
                broker_id=broker_id,
                rack=self.racks[index],
                registered_before=bool(before.registered[index]),
                registered_after=bool(after.registered[index]),
                leaders_before=int(before.leaders[index]),
                leaders_after=int(after.leaders[index]),
                preferred_leaders=int(after.preferred[index]),
                replicas_before=int(before.replicas[index]),
                replicas=int(after.replicas[index]),
                in_sync_replicas_before=int(before.in_sync[index]),
                in_sync_replicas_after=int(after.in_sync[index]),
            )
            if self.traffic:
                record.requests = sum(int(traffic.requests[index]) for traffic in self.traffic.values())
                record.bytes = self._all_bytes(index)
            for api, traffic in self.traffic.items():
                column = API_COLUMNS[api]
                setattr(record, f"{column}_requests", int(traffic.requests[index]))
                setattr(record, f"{column}_partitions", int(traffic.entries[index]))
                setattr(record, f"{column}_bytes", traffic.bytes_of(index))
            yield record

    def _all_bytes(self, broker: int) -> int | None:
        sizes = [traffic.bytes_of(broker) for traffic in self.traffic.values()]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def to_arrow(self) -> Any:
        """A row for each broker as a ``pyarrow.Table``, with the fields of BrokerRecord."""
        import pyarrow as pa

        return pa.Table.from_pylist([msgspec.to_builtins(record) for record in self.records()])

    def plot(self) -> Any:
        """A figure of matplotlib: leaders and replicas in sync of each broker, before and after.

        Raises InputError if matplotlib is missing.
        """
        panels = [
            ("leaders", self.before.leaders.tolist(), self.after.leaders.tolist()),
            ("replicas in sync", self.before.in_sync.tolist(), self.after.in_sync.tolist()),
        ]
        return bars_figure(panels, "broker", list(map(str, self.broker_ids.tolist())))

    def pictures(self) -> tuple[BarsPart, BarsPart]:
        """The leaders, and the replicas in sync, of the brokers that change most."""
        before, after = self.before, self.after
        return (
            self._bars("leaders", before.leaders.tolist(), after.leaders.tolist()),
            self._bars("replicas in sync", before.in_sync.tolist(), after.in_sync.tolist()),
        )

    def _bars(self, what: str, before: Sequence[int], after: Sequence[int]) -> BarsPart:
        changed = sorted(range(len(before)), key=lambda index: -abs(after[index] - before[index]))[:_SHOWN]
        rows = [(f"broker {self.broker_ids[index]}", before[index], after[index]) for index in sorted(changed)]
        return BarsPart(f"{what} before (grey) and after (blue)", rows, len(before))

    def heading(self) -> Heading:
        """See ``Shown``."""
        facts = (("brokers", len(self)), ("registered after", int(self.after.registered.sum())))
        return Heading(self.operation, FactsPart(facts))

    def parts(self) -> Sequence[Part]:
        """See ``Shown``."""
        rows = [msgspec.to_builtins(record) for record in islice(self.records(), _SHOWN)]
        return (*self.pictures(), TablePart("brokers", _LISTED, rows, len(self)))
