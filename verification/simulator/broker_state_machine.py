"""A Hypothesis state machine: broker models on an unreliable network. The controller elects cleanly."""

from __future__ import annotations

from typing import NamedTuple

from kframe.errors import ErrorCode
from kframe_simulator.broker.broker import Broker
from kframe_simulator.broker.config import BrokerConfig
from kframe_simulator.broker.log import Log
from kframe_simulator.broker.messages import (
    LeaderState,
    PartitionMetadata,
    Produce,
    ProduceResponse,
    Record,
    UpdateMetadata,
)
from kframe_simulator.broker.outgoing import (
    AlteredPartition,
    AlterPartition,
    AlterPartitionResponseData,
    Outgoing,
    Peer,
    Reply,
    WriteState,
    WriteStateResponse,
)
from verification.simulator.broker_cluster import CONTROLLER_ID, P, order, state

IDS = (1, 2, 3)


class InFlight(NamedTuple):
    """A message or a reply in flight, and the run of its sender."""

    sender: int
    run: int
    out: Outgoing
    reply: Reply | None
    replied: bool


class BrokerStateMachine:
    """One partition on three brokers. Every rule is a possible next event."""

    def __init__(self, config: BrokerConfig) -> None:
        self.now = 0.0
        self.brokers = {broker_id: Broker(broker_id, config=config) for broker_id in IDS}
        self.runs = dict.fromkeys(IDS, 0)
        self.stored = state(1, IDS, 1, 0, IDS, is_new=True)
        self.network: list[InFlight] = []
        self.orders: dict[int, list[object]] = {broker_id: [] for broker_id in IDS}
        """The controller's queued requests for each broker."""
        self.produced: dict[int, Produce] = {}
        self.acked: list[Produce] = []
        """The records acknowledged with acks=all."""
        self.committed: list[Record] = []
        """The longest log below a high watermark that any leader ever had."""
        for broker in self.brokers.values():
            broker.start(0, self.now)
        self._announce()

    # -- Rules.

    def produce(self, broker: int, acks: int) -> None:
        number = len(self.produced) + 1
        request = self.produced[number] = Produce(P, number, acks, correlation=number)
        response = self.brokers[broker].handle(request, self.now)
        if isinstance(response, ProduceResponse):
            self._acked(number, response)
        self._collect()

    def deliver(self, index: int, lose: bool, repeat: bool) -> None:
        """A message arrives or is lost. The sender of a lost message gets the reply None."""
        if not self.network:
            return
        message = self.network.pop(index % len(self.network))
        if self.runs[message.sender] != message.run:
            return
        if repeat:
            self.network.append(message)
        if message.replied or lose:
            self.brokers[message.sender].on_response(message.out.number, None if lose else message.reply, self.now)
        else:
            self.network.append(message._replace(reply=self._reply(message.out), replied=True))
        self._collect()

    def handle_request(self, broker: int, repeat: bool) -> None:
        """A broker receives the next request of the controller."""
        orders = self.orders[broker]
        if orders and self.brokers[broker].running:
            request = orders[0] if repeat else orders.pop(0)
            self.brokers[broker].handle(request, self.now)  # type: ignore[arg-type]
            self._collect()

    def wait(self, ms: float) -> None:
        self.now += ms
        self._collect()

    def crash(self, broker: int) -> None:
        """A broker crashes. The controller elects another ISR member, or none."""
        if not self.brokers[broker].running:
            return
        self.brokers[broker].crash(self.now)
        self.runs[broker] += 1
        self.orders[broker].clear()
        rest = tuple(member for member in self.stored.isr if member != broker)
        self._elect(rest or self.stored.isr)

    def restart(self, broker: int) -> None:
        if not self.brokers[broker].running:
            self.brokers[broker].start(self.runs[broker], self.now)
            self._elect(self.stored.isr)

    def transfer_leadership(self, broker: int) -> None:
        """The controller transfers leadership to another ISR member."""
        if broker in self.stored.isr and self.brokers[broker].running:
            self._elect(self.stored.isr, broker)

    # -- Helpers.

    def _elect(self, isr: tuple[int, ...], preferred: int | None = None) -> None:
        live = [member for member in isr if self.brokers[member].running]
        before = self.stored
        leader = before.leader if before.leader in live else next(iter(live), -1)
        self.stored = state(
            preferred or leader, isr, before.leader_epoch + 1, before.partition_epoch + 1, before.replicas
        )
        self._announce()

    def _announce(self) -> None:
        now = self.stored
        live = tuple(broker_id for broker_id in IDS if self.brokers[broker_id].running)
        metadata = PartitionMetadata(now.leader, now.leader_epoch, now.isr, now.partition_epoch, now.replicas)
        for broker_id in live:
            self.orders[broker_id] += [UpdateMetadata(CONTROLLER_ID, 1, -1, live, {P: metadata}), order(now)]

    def _reply(self, out: Outgoing) -> Reply | None:
        if out.peer is Peer.BROKER:
            return self.brokers[out.peer_id].handle(out.message, self.now)  # type: ignore[arg-type,return-value]
        if isinstance(out.message, WriteState):
            return self._write(out.message)
        assert isinstance(out.message, AlterPartition)
        (proposed,) = out.message.partitions.values()
        now, error = self.stored, ErrorCode.NONE
        if proposed.leader_epoch != now.leader_epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        elif proposed.isr == now.isr:
            pass
        elif proposed.partition_epoch != now.partition_epoch:
            error = ErrorCode.INVALID_UPDATE_VERSION
        elif not all(self.brokers[member].running for member in proposed.isr):
            error = ErrorCode.INELIGIBLE_REPLICA
        else:
            self._store(proposed.isr)
        now = self.stored
        altered = AlteredPartition(error, now.leader, now.leader_epoch, now.isr, 0, now.partition_epoch)
        return AlterPartitionResponseData(ErrorCode.NONE, {P: altered})

    def _write(self, request: WriteState) -> WriteStateResponse:
        written = request.partition_epoch == self.stored.partition_epoch
        if written:
            self._store(request.isr)
        now = self.stored
        return WriteStateResponse(
            written, WriteState(P, now.leader, now.leader_epoch, now.isr, 1, 0, now.partition_epoch)
        )

    def _store(self, isr: tuple[int, ...]) -> None:
        now: LeaderState = self.stored
        self.stored = state(now.leader, isr, now.leader_epoch, now.partition_epoch + 1, now.replicas)

    def _collect(self) -> None:
        for broker_id, broker in self.brokers.items():
            for out in broker.tick(self.now):
                if out.peer is Peer.CLIENT:
                    assert isinstance(out.message, ProduceResponse)
                    self._acked(out.peer_id, out.message)
                elif out.number:
                    self.network.append(InFlight(broker_id, self.runs[broker_id], out, None, False))

    def _acked(self, number: int, response: ProduceResponse) -> None:
        request = self.produced[number]
        if response.error is ErrorCode.NONE and request.acks == -1:
            self.acked.append(request)

    # -- Invariants.

    def logs(self) -> dict[int, Log]:
        return {item: broker.disks.logs[P] for item, broker in self.brokers.items() if P in broker.disks.logs}

    def check(self) -> None:
        self._check_log_matching()
        self._check_high_watermark()
        self._check_committed_records()
        in_sync = [log for item, log in self.logs().items() if item in self.stored.isr]
        for log in in_sync:
            values = {record.value for record in log.records}
            missing = [request.value for request in self.acked if request.value not in values]
            assert not missing, f"acknowledged, but not on every member of {self.stored.isr}: {missing}"

    def _check_log_matching(self) -> None:
        """Two logs with a record of one leader epoch at one offset are equal up to that offset."""
        logs = list(self.logs().values())
        for log in logs:
            for other in logs:
                shared = min(len(log.records), len(other.records))
                last = next(
                    (offset for offset in reversed(range(shared))
                     if log.records[offset].leader_epoch == other.records[offset].leader_epoch), -1)  # fmt: skip
                assert log.records[: last + 1] == other.records[: last + 1]

    def _check_high_watermark(self) -> None:
        """Records below a leader's high watermark are in the log of each member of its maximal ISR."""
        leader = self.brokers.get(self.stored.leader)
        partition = leader.partitions.get(P) if leader is not None else None
        if partition is None or partition.leader_epoch != self.stored.leader_epoch or partition.leader_log is None:
            return
        high = partition.leader_log.high_watermark
        ends = {item: log.end for item, log in self.logs().items()}
        for member in partition.maximal_isr:
            assert ends.get(member, 0) >= high, f"high watermark {high}, but {member} has {ends.get(member, 0)}"

    def _check_committed_records(self) -> None:
        """Leader completeness: the leader of the current epoch has every record that was ever committed."""
        for broker in self.brokers.values():
            partition = broker.partitions.get(P)
            if partition is None or partition.leader_log is None:
                continue
            below = partition.leader_log.records[: partition.leader_log.high_watermark]
            assert below[: len(self.committed)] == self.committed[: len(below)]
            if len(below) > len(self.committed):
                self.committed = list(below)
        leader = self.brokers.get(self.stored.leader)
        if leader is not None and P in leader.disks.logs:
            records = leader.disks.logs[P].records
            assert records[: len(self.committed)] == self.committed
