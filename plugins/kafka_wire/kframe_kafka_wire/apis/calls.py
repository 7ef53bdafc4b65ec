"""A request, and the state that its handler needs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from kframe.plugin import ErrorCode, KframeError
from kframe.plugin.cluster import ClusterState, Endpoint, Registration
from kframe.plugin.server import CLUSTER, AclOperation, AclResourceType, MutationQuotas
from kframe.plugin.wire import LATEST, InterBrokerProtocol
from kframe_kafka_wire.access.access import Access
from kframe_kafka_wire.access.authorizer import Authorizer, FixedAuthorizer
from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.connections.broker_settings import BrokerSettings
from kframe_kafka_wire.protocol.codec import API_NAMES, Fields, Header
from kframe_kafka_wire.records.store import NoRecords, Records, RecordWriter, cluster_id, registered_brokers
from kframe_kafka_wire.records.tokens import Tokens

if TYPE_CHECKING:
    from kframe.plugin.controller import Controller

_log = logging.getLogger("kframe.kafka_wire")

Result = TypeVar("Result")


class RequestError(Exception):
    """Refuse a whole request: the response is the API's error response with this code and message.

    Kafka's handlers throw an ``ApiException``, from which ``AbstractRequest.getErrorResponse`` makes the response.
    """

    def __init__(self, code: int, message: str | None = None) -> None:
        super().__init__(message or ErrorCode(code).name)
        self.code = code
        self.message = message


#: The value of authorized operations that were not requested.
OPERATIONS_NOT_REQUESTED: Final = -(2**31)


@dataclass(slots=True)
class ServerContext:
    """The state that all handlers share."""

    controller: Controller
    node: Registration
    """The controller's own registration, with its advertised endpoints."""
    config: Mapping[str, str] = field(repr=False)
    authorizer: Authorizer = field(default_factory=FixedAuthorizer)
    records: Records = field(default_factory=NoRecords)
    producer_ids: range = range(0)
    """The unused rest of the block of producer ids for InitProducerId."""
    producer_ids_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a new block is allocated."""
    write_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while records change that brokers write, too, so that writes of this node do not conflict."""
    known_cluster_id: str | None = None
    tokens: Tokens | None = None
    """Delegation tokens; None if they are disabled."""
    settings_reader: BrokerSettings | None = None
    """Reads settings of brokers. None if it is disabled."""
    mutations: MutationQuotas = field(default_factory=MutationQuotas)
    """Limits created and deleted partitions. Only the event loop uses it."""
    topic_ids: bool = field(init=False)
    """Whether brokers know topic ids. A broker that received a topic without its id serves no fetch by id."""

    def __post_init__(self) -> None:
        text = self.setting("inter.broker.protocol.version", "")
        self.topic_ids = (InterBrokerProtocol.parse(text) if text else LATEST).topic_ids

    async def wait(self, future: Future[Result]) -> Result:
        """Await the controller's result."""
        return await asyncio.wrap_future(future)

    async def inspect_cluster(self, read: Callable[[ClusterState], Result]) -> Result | None:
        """Evaluate ``read`` on the present columns. None on a standby, which has none. See ``Controller.inspect``."""
        return await self.wait(self.controller.inspect(lambda cluster: None if cluster is None else read(cluster)))

    async def read(self, read: Callable[[Records], Result]) -> Result:
        """Read records of the store outside the event loop. Raises StoreError."""
        return await asyncio.to_thread(read, self.records)

    async def write(self, write: Callable[[RecordWriter], Result]) -> Result:
        """Write records outside the event loop. Raises StoreError, and RequestError if the store is read-only."""
        records: object = self.records
        if not isinstance(records, RecordWriter):
            raise RequestError(ErrorCode.UNSUPPORTED_VERSION, "the controller's store takes no such records")
        async with self.write_lock:
            return await asyncio.to_thread(write, records)

    async def cluster_id(self) -> str | None:
        """The cluster id, which is read until it exists."""
        if self.known_cluster_id is None:
            try:
                self.known_cluster_id = await asyncio.to_thread(cluster_id, self.records)
            except KframeError as error:
                _log.warning("the cluster id cannot be read: %s", error)
        return self.known_cluster_id

    async def broker_settings(self, keys: Sequence[str]) -> dict[str, str]:
        """The values of these keys at a live broker. Empty if none answers."""
        return {} if self.settings_reader is None else await self.settings_reader.read(await self._live_brokers(), keys)

    async def static_settings(self, keys: Sequence[str]) -> dict[str, str]:
        """The values of these keys in the server.properties of a live broker (``BrokerSettings.read_static``)."""
        if self.settings_reader is None:
            return {}
        return await self.settings_reader.read_static(await self._live_brokers(), keys)

    async def _live_brokers(self) -> list[Registration]:
        """The live brokers: from the active controller's columns, on a standby from the store's records."""

        def live(cluster: ClusterState) -> list[Registration]:
            known = zip(cluster.brokers.registrations, cluster.brokers.live, strict=True)
            return [registration for registration, is_registered in known if registration is not None and is_registered]

        brokers = await self.inspect_cluster(live)
        if brokers is not None:
            return brokers
        return await asyncio.to_thread(registered_brokers, self.records, self.node.broker_id)

    def setting(self, key: str, default: str) -> str:
        """A setting by Kafka's key."""
        return self.config.get(key, "").strip() or default

    def number(self, key: str, default: int) -> int:
        """A setting as a whole number, or the default for other values."""
        try:
            return int(self.setting(key, str(default)))
        except ValueError:
            return default

    def enabled(self, key: str, default: bool) -> bool:
        """A boolean setting."""
        return self.setting(key, str(default)).lower() == "true"


@dataclass(slots=True)
class Call:
    """A request."""

    header: Header
    body: Fields = field(repr=False)
    session: ClientSession
    context: ServerContext

    @property
    def version(self) -> int:
        """The API version."""
        return self.header.api_version

    @property
    def timeout_ms(self) -> int:
        """The timeout of the request."""
        return int(self.body.get("timeout", 0))

    @property
    def access(self) -> Access:
        """What the client may do."""
        return Access(self.context.authorizer, self.session)

    def is_authorized(
        self, operation: AclOperation, kind: AclResourceType = AclResourceType.CLUSTER, name: str = CLUSTER
    ) -> bool:
        """Whether the client is authorized."""
        return self.access.is_authorized(operation, kind, name)

    def require(self, operation: AclOperation) -> None:
        """Raises RequestError unless the client may do the operation on the cluster (Kafka 3.9 ``AuthHelper``)."""
        if not self.is_authorized(operation):
            name = API_NAMES[self.header.api_key]
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            raise RequestError(code, f"Request {name} of {self.session.principal} is not authorized.")

    def is_authorized_on_any(self, operation: AclOperation, kind: AclResourceType) -> bool:
        """Whether the client may do the operation on any resource of this type."""
        session = self.session
        return self.context.authorizer.allows_any(session.principal, session.host, operation, kind)

    def operations(self, kind: AclResourceType, name: str) -> int:
        """The authorized operations on a resource as a bit mask."""
        return self.access.operations(kind, name)

    def endpoint(self, registration: Registration) -> Endpoint | None:
        """The endpoint of a broker on the listener of this connection."""
        return next(
            (endpoint for endpoint in registration.endpoints if endpoint.listener == self.session.listener), None
        )


#: Messages for errors where Kafka has none or less detailed ones. ``{item}`` is the requested item.
_REASONS: Final[Mapping[int, str]] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "{item}: the request failed; the controller's log has the reason",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "{item}: there is no such topic or partition",
    ErrorCode.REQUEST_TIMED_OUT: "{item}: the operation did not complete within the timeout of the request",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "{item}: the name is invalid, collides with another topic ('.' and '_' are"
    " the same in names of metrics), or the topic is being deleted",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TOPIC_ALREADY_EXISTS: "Topic '{item}' already exists",
    ErrorCode.INVALID_PARTITIONS: "{item}: the number of partitions is invalid",
    ErrorCode.INVALID_REPLICATION_FACTOR: "{item}: the replication factor is below 1 or larger than the number of"
    " brokers that are registered",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "{item}: the replicas are empty, name a broker twice or a broker that is not"
    " registered, or differ in number",
    ErrorCode.INVALID_CONFIG: "{item}: a configuration is unknown, or its value is invalid",
    ErrorCode.NOT_CONTROLLER: "{item}: this is not the controller; it is {controller}",
    ErrorCode.INVALID_REQUEST: "{item}: the request contradicts itself, or cannot be served",
    ErrorCode.REASSIGNMENT_IN_PROGRESS: "{item}: a partition of it is being reassigned",
    ErrorCode.TOPIC_DELETION_DISABLED: "{item}: topics cannot be deleted here (delete.topic.enable)",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "{item}: the preferred leader is offline, or not in the ISR",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "{item}: no eligible replica is online",
    ErrorCode.ELECTION_NOT_NEEDED: "{item}: it already has the leader that the election would choose",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "{item}: no reassignment of it is in progress",
    ErrorCode.UNKNOWN_TOPIC_ID: "{item}: no topic has this id",
    ErrorCode.FEATURE_UPDATE_FAILED: "{item}: the level could not be stored",
}


def reason(call: Call, code: int, item: object) -> str | None:
    """The error message, or None."""
    text = _REASONS.get(code)
    if text is None:
        return None
    active = call.context.controller.status().active_controller
    controller = f"broker {active}" if active >= 0 else "no controller at present"
    return text.format(item=item, controller=controller)
