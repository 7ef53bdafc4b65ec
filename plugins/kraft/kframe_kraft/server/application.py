"""The controller as the program behind a server (``kframe_kafka_wire.server.application.Application``)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from kframe_kafka_wire.access.access import Access
from kframe_kafka_wire.access.authorizer import OperationAuthorizer
from kframe_kafka_wire.access.session import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE, ClientSession
from kframe_kafka_wire.apis import refusals
from kframe_kafka_wire.apis.refusals import ErrorFormat
from kframe_kafka_wire.protocol.codec import API_NAMES, Fields, Header

from kframe.plugin import ErrorCode
from kframe.plugin.kraft_controller import RequestRefused
from kframe_kraft.apis.acl_apis import AclApis
from kframe_kraft.apis.broker_apis import BrokerApis
from kframe_kraft.apis.cluster_apis import ClusterApis
from kframe_kraft.apis.cluster_operations import CLUSTER_OPERATIONS
from kframe_kraft.apis.config_apis import ConfigApis
from kframe_kraft.apis.envelopes import ENVELOPE, Envelopes
from kframe_kraft.apis.partition_apis import PartitionApis
from kframe_kraft.apis.quorum_apis import FETCH, FETCH_SNAPSHOT, QuorumApis
from kframe_kraft.apis.quota_apis import QuotaApis
from kframe_kraft.apis.token_apis import TokenApis
from kframe_kraft.apis.topic_apis import TopicApis
from kframe_kraft.apis.user_apis import UserApis
from kframe_kraft.controller import NotController

Handler: TypeAlias = Callable[[Header, Fields, ClientSession], Awaitable[Fields]]
#: The first versions of ApiVersions in which clients name their software, read features with level 0, and name a node.
_SOFTWARE, _LEVEL_ZERO, _NODE = 3, 4, 5
_SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_RESOURCE: Final = "resource_type", "resource_name"
_ELECTIONS: Final = refusals.each_partition(
    "topic_partitions",
    "replica_election_results",
    topic="topic",
    response_field="partition_result",
    index="partition_id",
)


@dataclass(frozen=True, slots=True)
class OfferedApi:
    """An API in the versions from ``oldest`` to ``newest``, and the format of its error response."""

    oldest: int
    newest: int
    handler: Handler
    refusal: ErrorFormat = refusals.plain


@dataclass(frozen=True, slots=True)
class ControllerApis:
    """Who answers which requests. ``features`` returns the fields of ApiVersions about features."""

    quorum: QuorumApis
    brokers: BrokerApis
    topics: TopicApis
    partitions: PartitionApis
    configs: ConfigApis
    quotas: QuotaApis
    cluster: ClusterApis
    features: Callable[[], Fields]
    acls: AclApis
    users: UserApis
    tokens: TokenApis

    def table(self) -> Mapping[int, OfferedApi]:
        """Every API by its key, but for those before a login, and Envelope."""
        quorum, brokers, topics, partitions = self.quorum, self.brokers, self.topics, self.partitions
        configs = refusals.each_entry("resources", "responses", *_RESOURCE)
        return {
            FETCH: OfferedApi(4, 18, quorum.fetch, refusals.fetch),
            19: OfferedApi(2, 7, topics.create_topics, refusals.each_entry("topics", "topics", "name", configs=())),
            20: OfferedApi(1, 6, topics.delete_topics, refusals.delete_topics),
            29: OfferedApi(1, 3, self.acls.describe_acls),
            30: OfferedApi(1, 3, self.acls.create_acls, refusals.each_entry("creations", "results")),
            31: OfferedApi(1, 3, self.acls.delete_acls, refusals.each_entry("filters", "filter_results")),
            32: OfferedApi(
                1, 4, self.configs.describe_configs, refusals.each_entry("resources", "results", *_RESOURCE, configs=())
            ),
            33: OfferedApi(0, 2, self.configs.alter_configs, configs),
            37: OfferedApi(0, 3, topics.create_partitions, refusals.each_entry("topics", "results", "name")),
            38: OfferedApi(1, 3, self.tokens.create_token),
            39: OfferedApi(1, 2, self.tokens.renew_token, refusals.fields(expiry_timestamp=-1)),
            40: OfferedApi(1, 2, self.tokens.expire_token, refusals.fields(expiry_timestamp=-1)),
            43: OfferedApi(0, 2, partitions.elect_leaders, _ELECTIONS),
            44: OfferedApi(0, 1, self.configs.incremental_alter_configs, configs),
            45: OfferedApi(0, 1, partitions.alter_reassignments, refusals.each_partition("topics", "responses")),
            46: OfferedApi(0, 0, partitions.list_reassignments, refusals.list_reassignments),
            49: OfferedApi(0, 1, self.quotas.alter_client_quotas, refusals.each_entry("entries", "entries", "entity")),
            51: OfferedApi(0, 0, self.users.alter_credentials, refusals.alter_scram),
            52: OfferedApi(0, 1, quorum.vote),
            53: OfferedApi(0, 1, quorum.begin_or_end_epoch),
            54: OfferedApi(0, 1, quorum.begin_or_end_epoch),
            55: OfferedApi(0, 2, quorum.describe_quorum),
            56: OfferedApi(2, 3, brokers.alter_partition),
            57: OfferedApi(0, 2, self.cluster.update_features, refusals.fields(results=())),
            FETCH_SNAPSHOT: OfferedApi(0, 1, quorum.fetch_snapshot),
            60: OfferedApi(0, 2, self.cluster.describe_cluster, refusals.fields(cluster_id="", brokers=())),
            62: OfferedApi(0, 4, brokers.register),
            63: OfferedApi(0, 2, brokers.heartbeat),
            64: OfferedApi(0, 0, brokers.unregister),
            67: OfferedApi(0, 0, brokers.allocate_producer_ids),
            70: OfferedApi(0, 0, brokers.register_controller),
            73: OfferedApi(0, 0, brokers.assign_directories),
            94: OfferedApi(0, 0, brokers.unregister_controller),
        }


class KraftApplication:
    """Answers the requests of brokers, clients and other controllers. They may do what ``authorizer`` allows."""

    def __init__(self, apis: ControllerApis, authorizer: OperationAuthorizer) -> None:
        self._authorizer = authorizer
        self._features = apis.features
        self._apis = {
            SASL_HANDSHAKE: OfferedApi(0, 1, _no_login),
            API_VERSIONS: OfferedApi(0, 5, self._api_versions),
            SASL_AUTHENTICATE: OfferedApi(0, 2, _no_login),
            **apis.table(),
        }
        self._envelopes = Envelopes(self.is_offered, self._answer)

    def is_offered(self, api_key: int, version: int) -> bool:
        """See ``Application``."""
        api = self._apis.get(api_key)
        return (api_key, version) == (ENVELOPE, 0) or (api is not None and api.oldest <= version <= api.newest)

    def versions_on_offer(self) -> Sequence[Fields]:
        """See ``Application``."""
        offered = {key: (api.oldest, api.newest) for key, api in self._apis.items()} | {ENVELOPE: (0, 0)}
        return [
            {"api_key": key, "min_version": oldest, "max_version": newest}
            for key, (oldest, newest) in sorted(offered.items())
        ]

    def is_ready(self) -> bool:
        """See ``Application``."""
        return True

    async def respond(self, header: Header, body: Fields, session: ClientSession) -> Fields | None:
        """See ``Application``."""
        if header.api_key == ENVELOPE:
            if not Access(self._authorizer, session).is_authorized(CLUSTER_OPERATIONS[ENVELOPE]):
                return {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
            return await self._envelopes.envelope(header, body, session)
        try:
            return await self._answer(header, body, session)
        except NotController as error:
            return self._refused(header, body, ErrorCode.NOT_CONTROLLER, str(error))

    def is_large(self, header: Header, response: Fields) -> bool:
        """See ``Application``. The records of Fetch are not copied."""
        return header.api_key == FETCH_SNAPSHOT

    async def _answer(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """The response of the active controller. Raises NotController."""
        operation = CLUSTER_OPERATIONS.get(header.api_key)
        if operation is not None and not Access(self._authorizer, session).is_authorized(operation):
            name = API_NAMES.get(header.api_key, header.api_key)
            message = f"Request {name} of {session.principal} is not authorized."
            return self._refused(header, body, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, message)
        try:
            return await self._apis[header.api_key].handler(header, body, session)
        except RequestRefused as refusal:
            return self._refused(header, body, refusal.error, refusal.message)

    def _refused(self, header: Header, body: Fields, error: ErrorCode, message: str) -> Fields:
        fields = {"error_code": error, "error_message": message}
        return self._apis[header.api_key].refusal(header.api_version, body, fields)

    async def _api_versions(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        if not _is_valid(header.api_version, body):
            return {"error_code": ErrorCode.INVALID_REQUEST, "api_keys": [], "throttle_time": 0}
        fields = self._features()
        if header.api_version < _LEVEL_ZERO:
            supported = [each for each in fields["supported_features"] if each["min_version"]]
            fields = {**fields, "supported_features": supported}
        return {"error_code": ErrorCode.NONE, "api_keys": self.versions_on_offer(), "throttle_time": 0, **fields}


async def _no_login(header: Header, body: Fields, session: ClientSession) -> Fields:
    """SaslHandshake and SaslAuthenticate on a listener without logins."""
    raise RequestRefused(ErrorCode.ILLEGAL_SASL_STATE, "this listener has no logins")


def _is_valid(version: int, body: Fields) -> bool:
    """Whether a client names its software, and a node only with the cluster (Kafka 4.4 ``ApiVersionsRequest``).

    A controller does not check which node the client means; a broker of Kafka does (KIP-1242).
    """
    if version >= _NODE and (body["cluster_id"] is None) != (body["node_id"] == -1):
        return False
    names = (body["client_software_name"], body["client_software_version"]) if version >= _SOFTWARE else ()
    return all(_SOFTWARE_NAME.fullmatch(name) for name in names)
