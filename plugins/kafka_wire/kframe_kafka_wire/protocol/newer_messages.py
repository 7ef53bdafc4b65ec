"""Layouts of messages that kio 0.6.2 does not have, as dataclasses of the same form.

DescribeCluster 2 is as in ``DescribeClusterRequest.json`` and ``DescribeClusterResponse.json`` of Kafka 4.4, and the
response to DescribeLogDirs 5 as in its ``DescribeLogDirsResponse.json``; the request is that of version 4. Fetch 18 and
BrokerHeartbeat 2 are as in ``FetchRequest.json`` and ``BrokerHeartbeatRequest.json``. ApiVersions 5,
AlterPartitionReassignments 1, UpdateFeatures 2 and UnregisterController 0 are as in the files of the same names.
Responses to ApiVersions have one more tagged field, which marks instances of kframe. Clients skip tagged fields that
they do not know.
"""

# Annotations must be evaluated, because ``shapes`` reads the types of fields. So there is no ``annotations`` import.

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final
from uuid import UUID

from kio.schema.alter_partition_reassignments.v0.request import ReassignableTopic
from kio.schema.alter_partition_reassignments.v0.response import ReassignableTopicResponse
from kio.schema.api_versions.v3.request import ApiVersionsRequest as ApiVersionsRequest3
from kio.schema.api_versions.v3.response import ApiVersionsResponse as ApiVersionsResponse3
from kio.schema.api_versions.v4.request import ApiVersionsRequest as ApiVersionsRequest4
from kio.schema.api_versions.v4.response import ApiVersionsResponse as ApiVersionsResponse4
from kio.schema.broker_heartbeat.v1.request import BrokerHeartbeatRequest
from kio.schema.broker_heartbeat.v1.response import BrokerHeartbeatResponse
from kio.schema.describe_log_dirs.v4.request import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v4.response import DescribeLogDirsResponse, DescribeLogDirsResult
from kio.schema.fetch.v17.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v17.response import FetchResponse
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.schema.update_features.v1.request import UpdateFeaturesRequest

#: The tag of the field that marks a controller without a broker. Kafka numbers its own tags from 0.
CONTROLLER_TAG: Final = 20_260


def _of(kafka_type: str, **default: Any) -> Any:
    return field(metadata={"kafka_type": kafka_type}, **default)


@dataclass(frozen=True, kw_only=True)
class DescribeClusterRequest2:
    """DescribeCluster 2, which can include fenced brokers."""

    __flexible__: ClassVar[bool] = True
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    include_cluster_authorized_operations: bool = _of("bool")
    endpoint_type: int = _of("int8", default=1)
    include_fenced_brokers: bool = _of("bool")


@dataclass(frozen=True, kw_only=True)
class DescribeClusterBroker2:
    """A broker in the response to DescribeCluster 2."""

    __flexible__: ClassVar[bool] = True
    broker_id: int = _of("int32")
    host: str = _of("string")
    port: int = _of("int32")
    rack: str | None = _of("string", default=None)
    is_fenced: bool = _of("bool")


@dataclass(frozen=True, kw_only=True)
class DescribeClusterResponse2:
    """The response to DescribeCluster 2."""

    __flexible__: ClassVar[bool] = True
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    throttle_time: int = _of("timedelta_i32")
    error_code: int = _of("error_code")
    error_message: str | None = _of("string", default=None)
    endpoint_type: int = _of("int8", default=1)
    cluster_id: str = _of("string")
    controller_id: int = _of("int32", default=-1)
    brokers: tuple[DescribeClusterBroker2, ...] = field()
    cluster_authorized_operations: int = _of("int32", default=-(2**31))


@dataclass(frozen=True, kw_only=True)
class DescribeLogDirsResult5(DescribeLogDirsResult):
    """A log directory in the response to DescribeLogDirs 5."""

    is_cordoned: bool = _of("bool", default=False)


@dataclass(frozen=True, kw_only=True)
class DescribeLogDirsResponse5(DescribeLogDirsResponse):
    """The response to DescribeLogDirs 5."""

    results: tuple[DescribeLogDirsResult5, ...] = field()


@dataclass(frozen=True, kw_only=True)
class MarkedApiVersionsResponse3(ApiVersionsResponse3):
    """The response to ApiVersions 3."""

    is_controller_only: bool = field(metadata={"kafka_type": "bool", "tag": CONTROLLER_TAG}, default=False)


@dataclass(frozen=True, kw_only=True)
class MarkedApiVersionsResponse4(ApiVersionsResponse4):
    """The response to ApiVersions 4."""

    is_controller_only: bool = field(metadata={"kafka_type": "bool", "tag": CONTROLLER_TAG}, default=False)


@dataclass(frozen=True, kw_only=True)
class ApiVersionsRequest5(ApiVersionsRequest4):
    """ApiVersions 5, with the cluster and the node that the client means, if it knows both (KIP-1242)."""

    cluster_id: str | None = _of("string", default=None)
    node_id: int = _of("int32", default=-1)


@dataclass(frozen=True, kw_only=True)
class AlterPartitionReassignmentsRequest1:
    """AlterPartitionReassignments 1, which can keep replication factors as they are."""

    __flexible__: ClassVar[bool] = True
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    timeout: int = _of("timedelta_i32", default=60_000)
    allow_replication_factor_change: bool = _of("bool", default=True)
    topics: tuple[ReassignableTopic, ...] = field()


@dataclass(frozen=True, kw_only=True)
class AlterPartitionReassignmentsResponse1:
    """The response to AlterPartitionReassignments 1."""

    __flexible__: ClassVar[bool] = True
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    throttle_time: int = _of("timedelta_i32")
    allow_replication_factor_change: bool = _of("bool", default=True)
    error_code: int = _of("error_code")
    error_message: str | None = _of("string", default=None)
    responses: tuple[ReassignableTopicResponse, ...] = field()


@dataclass(frozen=True, kw_only=True)
class UpdateFeaturesResponse2:
    """The response to UpdateFeatures 2, which has no results of single features."""

    __flexible__: ClassVar[bool] = True
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    throttle_time: int = _of("timedelta_i32")
    error_code: int = _of("error_code")
    error_message: str | None = _of("string", default=None)


@dataclass(frozen=True, kw_only=True)
class UnregisterControllerRequest0:
    """UnregisterController."""

    __flexible__: ClassVar[bool] = True
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    controller_id: int = _of("int32")


@dataclass(frozen=True, kw_only=True)
class FetchPartition18(FetchPartition):
    """A partition in Fetch 18. A follower that does not tell its high watermark waits for records alone."""

    high_watermark: int = field(metadata={"kafka_type": "int64", "tag": 1}, default=2**63 - 1)


@dataclass(frozen=True, kw_only=True)
class FetchTopic18(FetchTopic):
    """A topic in Fetch 18."""

    partitions: tuple[FetchPartition18, ...] = field()


@dataclass(frozen=True, kw_only=True)
class FetchRequest18(FetchRequest):
    """Fetch 18."""

    topics: tuple[FetchTopic18, ...] = field()


@dataclass(frozen=True, kw_only=True)
class BrokerHeartbeatRequest2(BrokerHeartbeatRequest):
    """BrokerHeartbeat 2. The cordoned directories are null before the broker knows them."""

    cordoned_log_dirs: tuple[UUID, ...] | None = field(metadata={"kafka_type": "uuid", "tag": 1}, default=None)


#: Request and response by API key and version.
NEWER: Final[Mapping[tuple[int, int], tuple[Any, Any]]] = {
    (1, 18): (FetchRequest18, FetchResponse),
    (18, 3): (ApiVersionsRequest3, MarkedApiVersionsResponse3),
    (18, 4): (ApiVersionsRequest4, MarkedApiVersionsResponse4),
    (18, 5): (ApiVersionsRequest5, MarkedApiVersionsResponse4),
    (35, 5): (DescribeLogDirsRequest, DescribeLogDirsResponse5),
    (45, 1): (AlterPartitionReassignmentsRequest1, AlterPartitionReassignmentsResponse1),
    (57, 2): (UpdateFeaturesRequest, UpdateFeaturesResponse2),
    (60, 2): (DescribeClusterRequest2, DescribeClusterResponse2),
    (63, 2): (BrokerHeartbeatRequest2, BrokerHeartbeatResponse),
    (94, 0): (UnregisterControllerRequest0, UpdateFeaturesResponse2),
}
