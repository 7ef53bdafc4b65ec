"""The offered APIs, which are those of a 3.9 broker in ZooKeeper mode (``wire.md`` section 18.1).

Forwarding and the new group protocol (58, 68, 69) are not offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kframe.plugin import ErrorCode
from kframe.plugin.server import AclOperation
from kframe_kafka_wire.access.session import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kframe_kafka_wire.apis import acls, brokers, configs, internal, metadata, partitions, quotas, tokens, topics, users
from kframe_kafka_wire.apis import non_controller_apis as others
from kframe_kafka_wire.apis import refusals as errors
from kframe_kafka_wire.apis.calls import Call
from kframe_kafka_wire.protocol.codec import Fields

PRODUCE: Final = 0
METADATA: Final = 3
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ServedApi:
    """An API."""

    newest: int
    """The newest version; the oldest is 0."""
    handler: others.Handler
    refusal: errors.ErrorFormat = errors.plain
    """The format of the error response."""
    needs: AclOperation | None = None
    """The operation on the cluster that every caller must be allowed to do."""

    async def respond(self, call: Call) -> Fields:
        """The body of the response. Raises RequestError."""
        if self.needs is not None:
            call.require(self.needs)
        return await self.handler(call)


async def api_versions(call: Call) -> Fields:
    """The APIs and versions that this connection may use, and the mark of a node that is no broker."""
    for name in ("client_software_name", "client_software_version"):
        if name in call.body and _SOFTWARE.fullmatch(call.body[name]) is None:
            return {"error_code": ErrorCode.INVALID_REQUEST}
    return {"api_keys": offered_versions(APIS), "is_controller_only": True}


def offered_versions(api_keys: Iterable[int]) -> list[Fields]:
    """The versions of these APIs. The format is that of ApiVersions."""
    return [{"api_key": key, "min_version": 0, "max_version": APIS[key].newest} for key in api_keys]


def is_offered(api_key: int, version: int) -> bool:
    """Whether the server answers this version of an API."""
    return api_key in APIS and 0 <= version <= APIS[api_key].newest


def refusal(api_key: int, version: int, body: Fields, code: int, message: str | None) -> Fields | None:
    """The body of the error response to a request. None where the client expects no response."""
    if api_key == PRODUCE and body["acks"] == 0:
        return None
    return APIS[api_key].refusal(version, body, {"error_code": code, "error_message": message})


_CONFIG_RESOURCE: Final = "resource_type", "resource_name"
_ANONYMOUS: Final = {"principal_type": "User", "principal_name": "ANONYMOUS"}
_NO_TOKEN: Final = {
    **_ANONYMOUS,
    **{f"token_requester_{key}": value for key, value in _ANONYMOUS.items()},
    "issue_timestamp": -1,
    "expiry_timestamp": -1,
    "max_timestamp": -1,
}
_BROKER: Final = AclOperation.CLUSTER_ACTION
#: Requests that only a leader, a coordinator or a listener with logins serves.
_LEADER: Final = others.refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_COORDINATOR: Final = others.refused(ErrorCode.NOT_COORDINATOR)
_NO_LOGIN: Final = others.refused(ErrorCode.ILLEGAL_SASL_STATE, "no login here")
#: Every API by its key, in ascending order.
APIS: Final[Mapping[int, ServedApi]] = {
    PRODUCE: ServedApi(11, _LEADER, errors.each_partition(
        "topic_data", "responses", {"base_offset": -1, "log_append_time": -1},
        request_field="partition_data", response_field="partition_responses", index="index",
    )),
    1: ServedApi(17, others.fetch, errors.fetch),
    2: ServedApi(9, _LEADER, errors.each_partition(extra_fields={"timestamp": -1, "offset": -1})),
    METADATA: ServedApi(12, metadata.metadata, errors.metadata),
    4: ServedApi(7, brokers.stale_controller, errors.leader_and_isr, _BROKER),
    5: ServedApi(4, brokers.stale_controller, errors.stop_replica, _BROKER),
    6: ServedApi(8, brokers.stale_controller, needs=_BROKER),
    7: ServedApi(3, brokers.controlled_shutdown, needs=_BROKER),
    8: ServedApi(9, _COORDINATOR, errors.each_partition()),
    9: ServedApi(9, others.offset_fetch, errors.offset_fetch),
    10: ServedApi(6, internal.find_coordinator, errors.find_coordinator),
    11: ServedApi(9, _COORDINATOR, errors.join_group),
    12: ServedApi(4, _COORDINATOR),
    13: ServedApi(5, _COORDINATOR),
    14: ServedApi(5, _COORDINATOR),
    15: ServedApi(5, _COORDINATOR, errors.each_entry("groups", "groups", "group_id")),
    16: ServedApi(5, others.empty_response),
    SASL_HANDSHAKE: ServedApi(1, _NO_LOGIN),
    API_VERSIONS: ServedApi(4, api_versions),
    19: ServedApi(7, topics.create_topics, errors.each_entry("topics", "topics", "name", configs=())),
    20: ServedApi(6, topics.delete_topics, errors.delete_topics),
    21: ServedApi(2, _LEADER, errors.each_partition(extra_fields={"low_watermark": -1})),
    22: ServedApi(5, brokers.init_producer_id, errors.fields(producer_id=-1, producer_epoch=-1)),
    23: ServedApi(4, _LEADER, errors.each_partition(
        extra_fields={"leader_epoch": -1, "end_offset": -1}, topic="topic", index="partition",
    )),
    24: ServedApi(5, others.add_partitions, errors.add_partitions),
    25: ServedApi(4, _COORDINATOR),
    26: ServedApi(4, _COORDINATOR),
    27: ServedApi(1, _LEADER, errors.txn_markers, _BROKER),
    28: ServedApi(4, _COORDINATOR, errors.each_partition()),
    29: ServedApi(3, acls.describe_acls, needs=AclOperation.DESCRIBE),
    30: ServedApi(3, acls.create_acls, errors.each_entry("creations", "results"), AclOperation.ALTER),
    31: ServedApi(3, acls.delete_acls, errors.each_entry("filters", "filter_results"), AclOperation.ALTER),
    32: ServedApi(4, configs.describe_configs, errors.each_entry("resources", "results", *_CONFIG_RESOURCE)),
    33: ServedApi(2, configs.alter_configs, errors.each_entry("resources", "responses", *_CONFIG_RESOURCE)),
    34: ServedApi(2, others.refused(ErrorCode.REPLICA_NOT_AVAILABLE), errors.alter_log_dirs, AclOperation.ALTER),
    35: ServedApi(4, others.describe_log_dirs, needs=AclOperation.DESCRIBE),
    SASL_AUTHENTICATE: ServedApi(2, _NO_LOGIN),
    37: ServedApi(3, topics.create_partitions, errors.each_entry("topics", "results", "name")),
    38: ServedApi(3, tokens.create_token, errors.fields(**_NO_TOKEN)),
    39: ServedApi(2, tokens.renew_token, errors.fields(expiry_timestamp=-1)),
    40: ServedApi(2, tokens.expire_token, errors.fields(expiry_timestamp=-1)),
    41: ServedApi(3, tokens.describe_tokens),
    42: ServedApi(2, _COORDINATOR, errors.each_entry("groups_names", "results", "group_id")),
    43: ServedApi(2, partitions.elect_leaders, errors.each_partition(
        "topic_partitions", "replica_election_results",
        topic="topic", response_field="partition_result", index="partition_id",
    )),
    44: ServedApi(1, configs.incremental_alter_configs, errors.each_entry("resources", "responses", *_CONFIG_RESOURCE)),
    45: ServedApi(0, partitions.alter_reassignments, errors.each_partition("topics", "responses"), AclOperation.ALTER),
    46: ServedApi(0, partitions.list_reassignments, errors.list_reassignments, AclOperation.DESCRIBE),
    47: ServedApi(0, _COORDINATOR),
    48: ServedApi(1, quotas.describe_quotas),
    49: ServedApi(1, quotas.alter_quotas, errors.each_entry("entries", "entries", "entity")),
    50: ServedApi(0, users.describe_credentials, errors.describe_scram),
    51: ServedApi(0, users.alter_credentials, errors.alter_scram),
    56: ServedApi(3, partitions.alter_partition, needs=_BROKER),
    57: ServedApi(1, brokers.update_features),
    60: ServedApi(1, metadata.describe_cluster, errors.fields(cluster_id="", controller_id=-1)),
    61: ServedApi(0, _LEADER, errors.each_partition(request_field="partition_indexes")),
    65: ServedApi(0, _COORDINATOR,
            errors.each_entry("transactional_ids", "transaction_states", "transactional_id")),
    66: ServedApi(1, others.empty_response),
    67: ServedApi(0, brokers.allocate_producer_ids, needs=_BROKER),
}  # fmt: skip
