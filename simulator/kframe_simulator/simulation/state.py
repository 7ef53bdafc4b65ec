"""The parts of a run: storage, brokers, controllers, clients, and pending faults."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from kframe.embedded.states import StateColumns
from kframe.model.arrays import Int32
from kframe.model.config import ControllerConfig
from kframe.model.elections import ElectionBatch, LeaderSelector
from kframe.model.events import TopicPartition
from kframe.model.ids import ElectionKind
from kframe.model.protocol import InterBrokerProtocol
from kframe.model.tables import TopicTable
from kframe.ports.store_requests import WriteAssignments, WriteStates
from kframe_simulator.replication.control_requests import Row
from kframe_simulator.simulation.brokers import BrokerProcess
from kframe_simulator.simulation.building import build_broker, build_cluster
from kframe_simulator.simulation.clients import Clients
from kframe_simulator.simulation.controllers import ControllerProcess
from kframe_simulator.simulation.ensemble import SimEnsemble
from kframe_simulator.simulation.options import Options
from kframe_simulator.simulation.recorder import Recorder
from kframe_simulator.simulation.watch import Invariant, Watch

#: Requests have topic ids from this inter-broker protocol on.
_TOPIC_IDS_SINCE: Final = InterBrokerProtocol.parse("2.8-IV1")


class FailingSelector:
    """Raises for the next ``raises`` elections; otherwise uses the built-in selector."""

    name = "saboteur"

    def __init__(self) -> None:
        self.raises = 0

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """Raise, or elect the first in-sync candidate as Kafka does."""
        if self.raises:
            self.raises -= 1
            raise RuntimeError("this selector fails by order")
        raise NotImplementedError("the built-in selector is to decide")


class SimulationState(Recorder, ABC):
    """The processes, the storage and the pending faults of a run."""

    def __init__(
        self,
        options: Options,
        selectors: Mapping[ElectionKind, LeaderSelector] | None,
        invariants: tuple[Invariant, ...],
    ) -> None:
        super().__init__(options)
        self.played: Counter[str] = Counter()
        self.faulty_selectors = FailingSelector()
        self.ensemble = SimEnsemble(StateColumns(build_cluster(options)))
        self.ensemble.simulation = self
        self.watch = Watch(self, invariants)
        for name, topic_id in self.ensemble.topic_ids.items():
            self.watch.known_id[name] = topic_id
            self.watch.ids_used[topic_id] = name
            self.watch.observed.topic_stored(name, topic_id)
        self.topic_ids_used = InterBrokerProtocol.parse(options.protocol) >= _TOPIC_IDS_SINCE
        self.controllers_store_isrs = InterBrokerProtocol.parse(options.protocol).alter_partition
        """Whether leaders propose ISRs to the controller instead of writing them to storage."""
        self.brokers = {broker: BrokerProcess(self, *build_broker(options, broker)) for broker in options.brokers}
        config = ControllerConfig(options.config)
        chosen = selectors or {kind: self.faulty_selectors for kind in ElectionKind if "plugin" in options.faults}
        self.controllers = [
            ControllerProcess(self, number, config, options.session_timeout_ms, options.request_timeout_ms, chosen)
            for number in range(options.controllers)
        ]
        self.changed_ms = 0.0
        """The time of the last write."""
        self.clients = Clients(self, options.producers)
        self.faults_continue = True
        """Whether sequences of faults continue."""
        self.isr_writes_to_delay = 0
        """How many of the next ISR writes of leaders are delayed until an override."""
        self.delayed_isr_writes: dict[str, Callable[[], None]] = {}
        """By topic: the function that performs a delayed ISR write."""
        self.malformed_completions = 0
        """How many of the next ends of reassignments have an unreadable record."""

    @abstractmethod
    def raced(self, request: WriteStates | WriteAssignments) -> None:
        """Another client writes before this write of a controller."""

    @abstractmethod
    def storing_assignments(self, table: TopicTable) -> None:
        """A controller is about to store assignments. Their record may become unreadable first."""

    @abstractmethod
    def delays_isr_write(self, key: TopicPartition, isr: tuple[int, ...], store: Callable[[], None]) -> bool:
        """Whether a leader's own ISR write is delayed until its reassignment is overridden."""

    def waits_for_consent(self, row: Row) -> bool:
        """Whether a partition without a leader may wait for an operator's consent: its last in-sync replica may have
        lost records (``kframe.last.replica.hold``)."""
        if not self.options.hold_last or len(row.isr) != 1:
            return False
        return not self.watch.observed.stopped_in_current_term(row.isr[0])
