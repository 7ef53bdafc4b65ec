"""Send the control requests of a failover over loopback to brokers that read everything and respond at once.

    python -m benchmarks.live.transport [--partitions 100000] [--brokers 10] [--runs 5]

Prints one JSON record with medians in milliseconds: encoding alone, ``send`` (the time that the controller waits),
until all responses arrived, and decoding one response with all partitions of a broker. The brokers run in a separate
process on the same machine.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import socket
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from kframe_kafka_wire.requests.content import LEADER_AND_ISR, BatchTopics, RequestContent
from kframe_kafka_wire.requests.responses import PendingRequest, read_response
from kframe_kafka_wire.requests.transport import WireTransport

from benchmarks.records import command_of, record_of
from kframe.bench.clusters import whole_cluster
from kframe.plugin.cluster import ClusterState, Endpoint, Registration
from kframe.plugin.transport import BrokerRows, ControlRequests
from kframe.plugin.wire import LATEST, ControlVersions, Encoder, unsigned_varint

#: Responses without any partition, after correlation id and tagged fields, by api key.
_RESPONSES = {4: b"\0\0\1\0", 5: b"\0\0\1\0", 6: b"\0\0\0"}


def sink(listener: socket.socket) -> None:
    """Receive requests and respond, one connection after another."""
    room = memoryview(bytearray(2**20))
    while True:
        connection, _ = listener.accept()
        with connection:
            while head := connection.recv(12, socket.MSG_WAITALL):
                remaining = int.from_bytes(head[:4], "big") - 8
                while remaining:
                    remaining -= connection.recv_into(room, min(remaining, len(room)))
                response = head[8:12] + b"\0" + _RESPONSES[int.from_bytes(head[4:6], "big")]
                connection.sendall(len(response).to_bytes(4, "big") + response)


def sinks(listeners: Sequence[socket.socket]) -> None:
    """All sinks, each in a thread."""
    threads = [threading.Thread(target=sink, args=(listener,), daemon=True) for listener in listeners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def failover(cluster: ClusterState) -> ControlRequests:
    """LeaderAndIsr for every replica, and all metadata for every broker."""
    p, none = cluster.partitions, np.empty(0, np.int32)
    rows = np.repeat(np.arange(len(p), dtype=np.int32), p.replica_count)
    order = np.argsort(p.replica[p.slots_of(np.arange(len(p)))], kind="stable")
    brokers = np.arange(len(cluster.brokers), dtype=np.int32)
    counts = np.bincount(p.replica[p.slots_of(np.arange(len(p)))], minlength=len(brokers))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return ControlRequests(
        1000,
        1,
        BrokerRows(brokers, offsets, rows[order]),
        np.zeros(len(rows), np.uint8),
        brokers,
        np.arange(len(p), dtype=np.int32),
        BrokerRows.none(),
        none,
        np.empty(0, np.uint8),
    )


def read_response_ms(cluster: ClusterState, requests: ControlRequests) -> float:
    """Reading a broker's response to all of its partitions, none in error, grouped by topic id."""
    (_, part), *_ = requests.leader_and_isr.slices()
    rows = requests.leader_and_isr.rows[part]
    topic, partition = cluster.partitions.topic[rows], cluster.partitions.partition[rows]
    sent = RequestContent(LEADER_AND_ISR, rows, topic, partition, None, None, BatchTopics.of(cluster, topic))
    starts = np.flatnonzero(np.concatenate([[True], topic[1:] != topic[:-1]])).tolist()
    reply = b"\0\0\0\1\0\0\0" + unsigned_varint(len(starts) + 1)
    for start, stop in zip(starts, [*starts[1:], len(rows)], strict=True):
        reply += cluster.topics.ids[topic[start]].tobytes() + unsigned_varint(stop - start + 1)
        reply += b"".join(int(number).to_bytes(4, "big") + b"\0\0\0" for number in partition[start:stop]) + b"\0"
    asked = PendingRequest(0, 1, 1, LEADER_AND_ISR, 7, 1, sent, slice(0, len(rows)))
    begun = time.perf_counter()
    read_response(asked, reply + b"\0")
    return (time.perf_counter() - begun) * 1000


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("partitions", 100_000), ("brokers", 10), ("runs", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(options.brokers)]
    process = multiprocessing.get_context("fork").Process(target=sinks, args=(listeners,), daemon=True)
    process.start()
    cluster = whole_cluster(options.partitions, options.brokers)
    cluster.brokers.register(
        [
            Registration(int(broker_id), 1, (Endpoint("PLAINTEXT", "127.0.0.1", listener.getsockname()[1]),))
            for broker_id, listener in zip(cluster.brokers.ids, listeners, strict=True)
        ]
    )
    transport = WireTransport({"broker.id": "1000", "listeners": "PLAINTEXT://127.0.0.1:9"})
    transport.open(lambda _event: None, lambda: True)
    transport.connect(cluster, tuple(range(options.brokers)))
    requests = failover(cluster)
    transport.send(
        cluster,
        replace(
            requests,
            leader_and_isr=BrokerRows.none(),
            is_new=np.empty(0, np.uint8),
            metadata_rows=np.empty(0, np.int32),
        ),
    )
    encoder = Encoder(ControlVersions.of(LATEST), others=(transport.node.registration,))
    taken: dict[str, list[float]] = {"encode_ms": [], "send_ms": [], "answered_ms": [], "answer_ms": []}
    nbytes = 0
    for _ in range(options.runs):
        await_idle(transport)
        begun = time.perf_counter()
        nbytes = sum(request.nbytes for request in list(encoder.encode(cluster, requests)))
        encoded = time.perf_counter()
        transport.send(cluster, requests)
        sent = time.perf_counter()
        await_idle(transport)
        answered = time.perf_counter()
        for name, seconds in (
            ("encode_ms", encoded - begun),
            ("send_ms", sent - encoded),
            ("answered_ms", answered - encoded),
        ):
            taken[name].append(seconds * 1000)
        taken["answer_ms"].append(read_response_ms(cluster, requests))
    transport.close()
    process.kill()
    result: dict[str, Any] = {name: round(statistics.median(request), 3) for name, request in taken.items()}
    result |= {
        "partitions": options.partitions,
        "brokers": options.brokers,
        "megabytes": round(nbytes / 1e6, 1),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(record_of(command_of("benchmarks.live.transport"), result), indent=1))


def await_idle(transport: WireTransport) -> None:
    """Return when all requests have got a response."""
    while not all(channel.idle for channel in transport.channels.values()):
        time.sleep(0.0005)


if __name__ == "__main__":
    main()
