"""One controller's session with the store in memory.

Small data are records with ZooKeeper's rules (``/controller``, ``/controller_epoch``, ``/brokers/ids/N``). Partition
states are columns, so that a write of a million of them takes a few array passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kframe.embedded.admin import ADMIN_HANDLERS, read_topic_names
from kframe.embedded.layout import (
    BROKERS,
    CONFIG_CHANGES,
    CONTROLLER,
    CONTROLLER_EPOCH,
    DELETE_TOPICS,
    FEATURE,
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    NO_FEATURES,
    NOTIFICATIONS,
    PREFERRED_ELECTION,
    REASSIGN_PARTITIONS,
    broker_path,
    read_registrations,
)
from kframe.embedded.records import (
    NO_VERSION,
    Change,
    CheckVersion,
    Create,
    Delete,
    Operation,
    RecordTree,
    SetData,
    StoredRecordError,
    WatchEvent,
)
from kframe.embedded.states import StateColumns
from kframe.embedded.topics import TOPICS, StoredTopics, topic_path
from kframe.errors import ControllerFenced, StoreError
from kframe.model.brokers import Registration
from kframe.model.changes import StoredStates, WriteResult
from kframe.model.cluster import ClusterState
from kframe.model.events import (
    BrokerDefaultsChanged,
    BrokerModified,
    BrokersChanged,
    ControllerChanged,
    DeletionsMarked,
    Event,
    IsrChangesNotified,
    LogDirEventsNotified,
    PreferredElectionStored,
    ReassignmentsStored,
    Reelect,
    SessionExpired,
    TopicModified,
    TopicsChanged,
    TopicSettingsChanged,
)
from kframe.ports.store import Notify
from kframe.ports.store_requests import (
    Claim,
    Handlers,
    Holder,
    Load,
    OwnsRole,
    Prepare,
    ReadBrokers,
    ReadController,
    ReadStates,
    ReadTopicNames,
    ReleaseRole,
    Reply,
    StoreRequest,
    WriteStates,
)

#: The controller id when there is no controller.
NO_CONTROLLER: Final = -1


@dataclass(frozen=True, slots=True)
class _Claimed:
    """A claimed role: its session, and the version of ``/controller_epoch`` that fences its writes."""

    session: int
    epoch_version: int


class MemoryStore:
    """Implements ``ports.Store`` for one controller of a MemoryEnsemble.

    When its session expires it gets a new one, as a ZooKeeper client does; a claim does not survive that.
    """

    def __init__(self, records: RecordTree, states: StateColumns, topics: StoredTopics) -> None:
        self._records = records
        self._states = states
        self._topics = topics
        self._read_versions: dict[str, int] = {}
        """Version of each topic's record when this session last read or wrote it."""
        self._known_config_changes: set[str] = set()
        self._notify: Notify = _ignore
        self._session: int | None = None
        self._claimed: _Claimed | None = None
        self._emits_controller_events = False
        """Whether events that only a controller handles are notified. This ends when the role is released."""

    def open(self, notify: Notify) -> None:
        """Connect and watch the controller record. Raises StoreError if open already."""
        if self._session is not None:
            raise StoreError("the store is open already")
        self._notify = notify
        self._start_session()

    def connected(self) -> bool:
        """Whether the store is open: an expired session is replaced immediately."""
        return self._session is not None

    def close(self) -> None:
        """Disconnect and delete our ``/controller``. Nothing is notified afterwards. May be called again."""
        session, self._session = self._session, None
        if session is not None:
            self._records.close_session(session)

    def lose_session(self) -> None:
        """The part of ``MemoryEnsemble.expire`` in this store. Raises StoreError if it is not open."""
        self._records.close_session(self._connected())
        self._emits_controller_events = False
        self._start_session()
        self._notify(SessionExpired())
        self._notify(Reelect())

    def perform(self, request: StoreRequest[Reply]) -> Reply:
        """The reply to a request, at once."""
        return _HANDLERS.perform(self, request)

    def _claim(self, request: Claim) -> int | None:
        """Claim the role, and return the controller epoch: the last epoch plus one. A takeover replaces the record of
        another controller or broker."""
        session = self._connected()
        if request.takeover and self._records.exists(session, CONTROLLER) is not None:
            if request.brokers_only and not self._is_owned_by_broker():
                self._records.exists(session, CONTROLLER, watch=True)
                return None
            self._records.multi(session, [Delete(CONTROLLER)])
        data, stat = self._records.get(session, CONTROLLER_EPOCH)
        controller_epoch = int(data) + 1
        try:
            _, version = self._records.multi(
                session,
                [
                    Create(CONTROLLER, str(request.controller_id).encode(), ephemeral=True),
                    SetData(CONTROLLER_EPOCH, str(controller_epoch).encode(), stat.version),
                ],
            )
        except StoredRecordError:
            return None
        finally:
            self._records.exists(session, CONTROLLER, watch=True)
        self._claimed = _Claimed(session, int(version))
        return controller_epoch

    def _is_owned_by_broker(self) -> bool:
        """Whether the session of the controller record also owns the registration of that broker id."""
        session = self._connected()
        data, holder = self._records.get(session, CONTROLLER)
        registration = self._records.exists(session, broker_path(int(data)))
        return registration is not None and registration.owner == holder.owner

    def _read_controller(self, request: ReadController) -> Holder:
        """The controller record, and whether it is ours."""
        session = self._connected()
        if self._records.exists(session, CONTROLLER, watch=True) is None:
            return Holder(NO_CONTROLLER, ours=False)
        data, stat = self._records.get(session, CONTROLLER)
        return Holder(int(data), stat.owner == session)

    def _owns_role(self, request: OwnsRole) -> bool:
        """Whether ``/controller`` is an ephemeral record of our own session."""
        stat = self._records.exists(self._connected(), CONTROLLER)
        return stat is not None and stat.owner == self._session

    def may_act(self) -> bool:
        """Whether the role was claimed in our present session, and is still ours."""
        claim, session = self._claimed, self._session
        if claim is None or claim.session != session:
            return False
        stat = self._records.exists(session, CONTROLLER)
        return stat is not None and stat.owner == session

    def _prepare(self, request: Prepare) -> None:
        """Create ``/feature`` if it is missing, and delete pending log-dir and ISR notifications."""
        session = self._connected()
        operations: list[Operation] = []
        if self._records.exists(session, FEATURE) is None:
            operations.append(Create(FEATURE, NO_FEATURES))
        for path in NOTIFICATIONS:
            operations += [Delete(f"{path}/{name}") for name in self._records.children(session, path)]
        self._write_fenced(*operations)

    def _load(self, request: Load) -> ClusterState:
        """An independent copy of the stored content, with the present broker registrations. Arms their watches.

        Notifications that were created since ``Prepare`` are notified: no watch was armed.
        """
        session, registrations = self._connected(), self._read_brokers(ReadBrokers())
        cluster = self._states.copy_cluster()
        cluster.brokers.register(registrations)
        names = read_topic_names(self, ReadTopicNames())
        versions = self._records.versions(session, list(map(topic_path, names)), watch=True)
        self._read_versions.update(zip(names, versions, strict=True))
        for path in NOTIFICATIONS:
            if self._records.children(session, path, watch=True):
                self._notify(_LISTS[path]())
        self._known_config_changes = set(self._records.children(session, CONFIG_CHANGES, watch=True))
        return cluster

    def _read_brokers(self, request: ReadBrokers) -> tuple[Registration, ...]:
        """All registrations, by broker id. Arms the watches on their children and content."""
        registrations = read_registrations(self._records, self._connected(), watch=True)
        self._emits_controller_events = True
        return registrations

    def _write_states(self, request: WriteStates) -> WriteResult:
        """Create or compare-and-set each row. A few array passes over columns."""
        self._write_fenced()
        return self._states.write(request.cluster, request.change, self._records.zxid)

    def _read_states(self, request: ReadStates) -> StoredStates:
        """Read the states of these rows. A stored broker that is new to ``cluster`` gets an index in it."""
        self._connected()
        return self._states.read(request.cluster, request.rows)

    def _release(self, request: ReleaseRole) -> None:
        """Delete ``/controller`` if we still hold the role. Changes of registrations are no longer notified."""
        with suppress(ControllerFenced, StoreError):  # Another controller has the role, or there is none.
            self._write_fenced(Delete(CONTROLLER))
        self._claimed = None
        self._emits_controller_events = False

    def read_record(self, path: str) -> bytes | None:
        """The data at a path. None if there is no record."""
        try:
            return self._records.get(self._connected(), path)[0]
        except StoredRecordError:
            return None

    def read_record_names(self, path: str) -> tuple[str, ...]:
        """Names of the children of a path. None if there is no such record."""
        try:
            return tuple(self._records.children(self._connected(), path))
        except StoredRecordError:
            return ()

    def read_versioned_record(self, path: str) -> tuple[bytes, int] | None:
        """A record and its version. None if there is no such record."""
        try:
            data, stat = self._records.get(self._connected(), path)
        except StoredRecordError:
            return None
        return data, stat.version

    def write_record(self, path: str, data: bytes, version: int | None) -> bool:
        """Replace a record of that version, or create it with its parents if ``version`` is None. False if the version
        differs, or the record is missing or already exists."""
        session = self._connected()
        try:
            if version is None:
                self._records.ensure(session, path.rpartition("/")[0])
                self._records.create(session, path, data)
            else:
                self._records.set(session, path, data, version)
        except StoredRecordError:
            return False
        return True

    def delete_record(self, path: str, version: int) -> bool:
        """Delete a record of that version without children. False if it differs."""
        try:
            self._records.delete(self._connected(), path, version)
        except StoredRecordError:
            return False
        return True

    def append_record(self, prefix: str, data: bytes) -> None:
        """Create a sequential record with the path prefix ``prefix``. Create its parents, too."""
        session = self._connected()
        self._records.ensure(session, prefix.rpartition("/")[0])
        self._records.create(session, prefix, data, sequential=True)

    def quarantined(self) -> Mapping[str, str]:
        """None: this process wrote all records."""
        return {}

    def _connected(self) -> int:
        if self._session is None:
            raise StoreError("the store is not open")
        return self._session

    def _start_session(self) -> None:
        self._session = self._records.open_session(self._on_watch)
        self._records.exists(self._session, CONTROLLER, watch=True)

    def _write_fenced(self, *operations: Operation) -> None:
        """Apply ``operations`` in one multi that first checks our claim. Raises ControllerFenced or StoreError."""
        session, claim = self._connected(), self._claimed
        if claim is None or claim.session != session:
            raise ControllerFenced("this session has not claimed the role")
        try:
            self._records.multi(session, [CheckVersion(CONTROLLER_EPOCH, claim.epoch_version), *operations])
        except StoredRecordError as error:
            if error.position == 0:
                raise ControllerFenced("another controller has claimed the role") from error
            raise StoreError(str(error)) from error

    def _on_watch(self, event: WatchEvent) -> None:
        """Notify the controller of a watch event. Events that it does not use are ignored."""
        match event.change, event.path.rpartition("/"):
            case Change.DELETED, ("", _, "controller"):
                self._notify(Reelect())
            case _, ("", _, "controller"):
                self._notify(ControllerChanged())
            case _ if not self._emits_controller_events:
                return
            case Change.CHILDREN, _ if event.path == CONFIG_CHANGES:
                self._on_configs_changed()
            case Change.CHILDREN, _ if event.path in _LISTS:
                self._notify(_LISTS[event.path]())
            case Change.CREATED, _ if event.path in _REQUEST_RECORDS:
                self._notify(_REQUEST_RECORDS[event.path]())
            case Change.DATA, (parent, _, broker_id) if parent == BROKERS:
                self._notify(BrokerModified(int(broker_id)))
            case Change.DATA, (parent, _, topic) if parent == TOPICS:
                self._on_topic_changed(topic)

    def _on_topic_changed(self, name: str) -> None:
        """A topic record was written: notify unless this session wrote it. In that case only arm the watch again."""
        session, path = self._connected(), topic_path(name)
        (version,) = self._records.versions(session, [path])
        if version != NO_VERSION and version == self._read_versions.get(name):
            self._records.watch(session, path)
        else:
            self._notify(TopicModified(name))

    def _on_configs_changed(self) -> None:
        """Read which configs were changed, and watch for the next change."""
        session = self._connected()
        names = set(self._records.children(session, CONFIG_CHANGES, watch=True))
        for name in sorted(names - self._known_config_changes):
            kind, _, entity = self._records.get(session, f"{CONFIG_CHANGES}/{name}")[0].decode().partition("/")
            self._notify(TopicSettingsChanged(entity) if kind == "topics" else BrokerDefaultsChanged())
        self._known_config_changes = names


#: The event for a change of a record's children.
_LISTS: Final[dict[str, type[Event]]] = {
    BROKERS: BrokersChanged,
    TOPICS: TopicsChanged,
    DELETE_TOPICS: DeletionsMarked,
    ISR_CHANGES: IsrChangesNotified,
    LOG_DIR_EVENTS: LogDirEventsNotified,
}
#: The event for the creation of a record.
_REQUEST_RECORDS: Final[dict[str, type[Event]]] = {
    REASSIGN_PARTITIONS: ReassignmentsStored,
    PREFERRED_ELECTION: PreferredElectionStored,
}


def _ignore(_event: object) -> None:
    """The listener of a closed store."""


#: How the store handles each request.
_HANDLERS: Final[Handlers[MemoryStore]] = Handlers(
    ReadController.handled_by(MemoryStore._read_controller),
    OwnsRole.handled_by(MemoryStore._owns_role),
    Claim.handled_by(MemoryStore._claim),
    ReleaseRole.handled_by(MemoryStore._release),
    Prepare.handled_by(MemoryStore._prepare),
    Load.handled_by(MemoryStore._load),
    ReadBrokers.handled_by(MemoryStore._read_brokers),
    WriteStates.handled_by(MemoryStore._write_states),
    ReadStates.handled_by(MemoryStore._read_states),
    *ADMIN_HANDLERS,
)
