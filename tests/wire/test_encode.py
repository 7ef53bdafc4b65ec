"""The fields of control requests, version by version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kframe.errors import BrokenInvariant, ConfigError, ShapeError
from kframe.model.brokers import Endpoint, Registration
from kframe.model.protocol import LATEST
from kframe.model.requests import BrokerRows
from kframe.wire import BYTE_LIMIT, ControlVersions, Encoder
from kframe.wire.apis import LEADER_AND_ISR
from kframe.wire.brokers import live_leaders
from kframe.wire.leader_and_isr import LiveLeaders
from kframe.wire.sections import Lists, SectionWriter
from tests.wire.cases import LISTENER, Case, broker, build, case_of, partition, topic
from tests.wire.content import kio_class, kio_decode
from tests.wire.encoding import body, encoded

pytestmark = pytest.mark.kernel

NEWEST = ControlVersions.of(LATEST)


def decoded(case: Case, api: str, version: int) -> list[Any]:
    """Return the requests of kind ``api`` as kio reads them."""
    return [kio_decode(kio_class(api, version), body(request)) for request in encoded(*build(case), api, version)]


def announce(*partitions: dict[str, Any], brokers: list[dict[str, Any]], **changes: Any) -> Case:
    """Return requests of all kinds to broker 1 for the partitions of a topic."""
    keys = [[0, number] for number in range(len(partitions))]
    contents = {"leaderAndIsr": {"1": [[*key, 0] for key in keys]}, "updateMetadata": [[1], keys]}
    return case_of(brokers, [topic("t", *partitions, **changes)], **contents)


def test_requests_ordered_by_api_and_brokers_without_rows_skipped() -> None:
    case = case_of(
        [broker(1), broker(2)],
        [topic("t", partition([1, 2]))],
        leaderAndIsr={"2": [], "1": [[0, 0, 0]]},
        updateMetadata=[[2, 1], []],
        stopReplica={"1": [], "2": [[0, 0, 1, 1]]},
    )
    requests = list(Encoder(NEWEST).encode(*build(case)))
    assert [(request.api_key, request.broker) for request in requests] == [(4, 0), (6, 1), (6, 0), (5, 1)]


def test_chunks_are_read_only() -> None:
    case = announce(partition([1]), brokers=[broker(1)])
    chunks = [memoryview(chunk) for request in Encoder(NEWEST).encode(*build(case)) for chunk in request.chunks]
    assert len(chunks) == 4
    assert all(chunk.readonly for chunk in chunks)


def test_live_leaders_include_leader_in_controlled_shutdown() -> None:
    case = announce(partition([1]), brokers=[broker(1, shuttingDown=True)])
    [request] = decoded(case, "LeaderAndIsr", 7)
    assert [leader.broker_id for leader in request.live_leaders] == [1]


def test_leader_without_inter_broker_listener_raises_before_first_request() -> None:
    case = announce(partition([2, 1]), brokers=[broker(1), broker(2)])
    with pytest.raises(
        ConfigError, match=r"listeners of broker 2: found PLAINTEXT, expected a listener named INTERNAL"
    ):
        Encoder(NEWEST, "INTERNAL").encode(*build(case))


def test_broker_without_listeners_raises_config_error() -> None:
    case = announce(partition([1]), brokers=[broker(1, endpoints=[])])
    with pytest.raises(ConfigError, match=r"listeners of broker 1: found none"):
        Encoder(NEWEST).encode(*build(case))


def test_encoder_uses_changed_registration() -> None:
    encoder = Encoder(NEWEST)
    for host in ("before", "after"):
        case = announce(partition([1]), brokers=[broker(1, endpoints=[["PLAINTEXT", host, 9092, "PLAINTEXT"]])])
        for _ in range(2):
            leaders, metadata = (body(request) for request in encoder.encode(*build(case)))
            assert kio_decode(kio_class("LeaderAndIsr", 7), leaders).live_leaders[0].host_name == host
            [live_broker] = kio_decode(kio_class("UpdateMetadata", 8), metadata).live_brokers
            assert live_broker.endpoints[0].host == host


@pytest.mark.parametrize("version", range(9))
def test_live_brokers_include_unregistered_controller(version: int) -> None:
    """A controller that is not a broker has its id in every UpdateMetadata, and in no LeaderAndIsr as a leader."""
    others = [
        Registration(broker_id, -1, (Endpoint("PLAINTEXT", f"other-{broker_id}", 1),), "r") for broker_id in (2, 7)
    ]
    versions = ControlVersions(7, version, 4)
    case = announce(partition([1]), partition([3]), brokers=[broker(1), broker(2), broker(3)])
    leading, metadata = (body(request) for request in Encoder(versions, others=others).encode(*build(case)))
    live_brokers = kio_decode(kio_class("UpdateMetadata", version), metadata).live_brokers
    assert [broker.id_ for broker in live_brokers] == [1, 2, 3, 7]
    hosts = [broker.endpoints[0].host if version else broker.v0_host for broker in live_brokers]
    assert hosts == ["host-1", "host-2", "host-3", "other-7"]  # a broker's id is the broker's
    assert [leader.broker_id for leader in kio_decode(kio_class("LeaderAndIsr", 7), leading).live_leaders] == [1, 3]


def test_unregistered_broker_with_unsupported_listener_raises() -> None:
    other = Registration(7, -1, (Endpoint("INTERNAL", "h", 1),))
    with pytest.raises(ConfigError, match="listener INTERNAL of broker 7"):
        Encoder(ControlVersions(0, 1, 0), others=[other])


@pytest.mark.parametrize("byte_limit", [1, 200, BYTE_LIMIT])
def test_requests_count_their_partitions(byte_limit: int) -> None:
    case = announce(*[partition([1])] * 9, brokers=[broker(1)])
    counted = [
        (request.api_key, request.partitions) for request in Encoder(NEWEST, byte_limit=byte_limit).encode(*build(case))
    ]
    for api_key in (4, 6):
        assert sum(partitions for api, partitions in counted if api == api_key) == 9
    assert (len(counted) == 2) == (byte_limit == BYTE_LIMIT)


def test_broker_without_partitions_needs_no_inter_broker_listener() -> None:
    case = announce(partition([1]), brokers=[broker(1), broker(2, endpoints=[])])
    assert len(list(Encoder(NEWEST).encode(*build(case)))) == 2


ENDPOINTS = [
    # UpdateMetadata version, (listener, security protocol), error.
    (0, ("SSL", "SSL"), r"listeners of broker 1: found SSL, expected a listener named PLAINTEXT"),
    (1, ("INTERNAL", "PLAINTEXT"), r"listener INTERNAL of broker 1: found UpdateMetadata 1, expected version 3"),
    (2, ("INTERNAL", "SSL"), r"listener INTERNAL of broker 1: found UpdateMetadata 2, expected version 3"),
    (8, ("X", "QUIC"), r"listener X of broker 1: found security protocol QUIC, expected PLAINTEXT, SSL"),
]


@pytest.mark.parametrize(("version", "endpoint", "error"), ENDPOINTS)
def test_unsupported_endpoint_raises_config_error(version: int, endpoint: tuple[str, str], error: str) -> None:
    listener, security_protocol = endpoint
    case = case_of([broker(1, endpoints=[[listener, "host", 1, security_protocol]])], [], updateMetadata=[[1], []])
    with pytest.raises(ConfigError, match=error):
        encoded(*build(case), "UpdateMetadata", version)


@pytest.mark.parametrize("byte_limit", [0, -1, 2**31])
def test_byte_limit_out_of_range_raises_config_error(byte_limit: int) -> None:
    with pytest.raises(ConfigError, match=str(byte_limit)):
        Encoder(NEWEST, byte_limit=byte_limit)


def rows(brokers: list[int], offsets: list[int], batch_rows: list[int]) -> BrokerRows:
    return BrokerRows(*(np.array(array, np.int32) for array in (brokers, offsets, batch_rows)))


ROW, FLAG = np.zeros(1, np.int32), np.zeros(1, np.uint8)
BAD_BATCHES: list[tuple[str, dict[str, Any], str]] = [
    ("row-too-large", {"leader_and_isr": rows([0], [0, 1], [2]), "is_new": FLAG}, "rows of LeaderAndIsr: 2 to 2, but"),
    ("row-negative", {"metadata_rows": ROW - 1}, "rows of UpdateMetadata: -1 to -1"),
    ("broker-too-large", {"metadata_brokers": ROW + 1}, "brokers of UpdateMetadata: 1 to 1"),
    ("broker-negative", {"leader_and_isr": rows([-1], [0, 1], [0]), "is_new": FLAG}, "brokers of LeaderAndIsr: -1"),
    ("no-is-new", {"leader_and_isr": rows([0], [0, 1], [0])}, "LeaderAndIsr: 1 brokers, 2 offsets, arrays of"),
    ("no-delete", {"stop_replica": rows([0], [0, 1], [0]), "stop_leader_epoch": ROW}, "StopReplica: 1 brokers"),
    ("short-offsets", {"leader_and_isr": rows([0], [1], [0]), "is_new": FLAG}, "LeaderAndIsr: 1 brokers, 1 offsets"),
    ("offsets-from-1", {"leader_and_isr": rows([0], [1, 1], [0]), "is_new": FLAG}, "LeaderAndIsr: offsets do not asc"),
    ("offsets-fall", {"leader_and_isr": rows([0, 0], [0, 2, 1], [0]), "is_new": FLAG}, "offsets do not ascend from 0"),
    (
        "unregistered-leader-and-isr",
        {"leader_and_isr": rows([0], [0, 1], [1]), "is_new": FLAG},
        "LeaderAndIsr: row 1 is of a",
    ),
    (
        "unregistered-update-metadata",
        {"metadata_rows": ROW + 1},
        "UpdateMetadata: row 1 is of a topic that is unregistered",
    ),
    (
        "unregistered-stop-replica",
        {"stop_replica": rows([0], [0, 1], [1]), "stop_leader_epoch": ROW, "stop_delete": FLAG},
        "StopReplica: row 1 is of a topic that is unregistered",
    ),
]


@pytest.mark.parametrize(("changes", "error"), [row[1:] for row in BAD_BATCHES], ids=[row[0] for row in BAD_BATCHES])
def test_inconsistent_batch_raises_shape_error(changes: dict[str, Any], error: str) -> None:
    cluster, requests = build(case_of([broker(1)], [topic("t", partition([1])), topic("unregistered", partition([1]))]))
    cluster.partitions.topic[1] = -1
    with pytest.raises(ShapeError, match=error):
        Encoder(NEWEST).encode(cluster, replace(requests, **changes))


@pytest.mark.parametrize("version", [0, 4])
def test_leader_change_during_encoding_raises_broken_invariant(version: int) -> None:
    """The rows of the batch had two leaders when the tail was measured, and have one when it is written."""
    cluster, _ = build(case_of([broker(1), broker(2)], [topic("t", partition([1, 2]), partition([2, 1]))]))
    rows, compact = np.array([0, 1], np.int32), version >= 4
    leaders = LiveLeaders(cluster, rows, live_leaders(version, LISTENER), compact)
    writer = SectionWriter(cluster, LEADER_AND_ISR.layout(version))
    (group,) = writer.split(Lists(np.array([0, 2], np.int32), rows), np.array([60, 60], np.int32), 1000, 100)
    tail_length = leaders.measure(group)
    frame = writer.frame(group, b"", tail_length)
    leaders.write(group, tail_length, frame)
    cluster.partitions.leader[1] = cluster.partitions.leader[0]
    with pytest.raises(BrokenInvariant, match="columns changed while it was encoded"):
        leaders.write(group, tail_length, frame)
