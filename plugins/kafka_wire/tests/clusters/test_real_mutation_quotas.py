"""Controller mutation quotas (KIP-599) have the same effect under Kafka's controller and under kframe."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from kframe.testing.waiting import until
from verification.kafka_wire.client import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS, Client, change_topics
from verification.kafka_wire.instances import InstanceProcess
from verification.kafka_wire.tools import Tools
from verification.zookeeper.kafka import Cluster
from verification.zookeeper.servers import HOST, ServerHandle
from verification.zookeeper.tools import ToolProcess

#: Each client has ten tokens, and gains one a day.
QUOTA = f"controller_mutation_rate={1 / 86_400}"
WINDOW = {"controller.quota.window.num": "2", "controller.quota.window.size.seconds": str(5 * 86_400)}
#: The bound on differences of throttle times.
HOUR_MS = 3_600_000
#: (API, version, partitions), in this order by one client.
REQUESTS = [
    (CREATE_TOPICS, 7, 12),
    (CREATE_TOPICS, 7, 1),
    (CREATE_TOPICS, 6, 1),
    (CREATE_TOPICS, 5, 1),
    (CREATE_PARTITIONS, 3, 14),
    (CREATE_PARTITIONS, 2, 14),
    (DELETE_TOPICS, 6, 14),
    (DELETE_TOPICS, 5, 14),
    (DELETE_TOPICS, 4, 14),
]


def change_response(
    address: str, client_id: str, topic: str, api_key: int, version: int, count: int
) -> tuple[int, int]:
    """The error code of a topic and the throttle time in hours."""
    with Client(address, client_id=client_id) as client:
        (code,), throttle_ms = change_topics(client, api_key, version, {topic: count})
    return code, round(throttle_ms / HOUR_MS)


def change_responses(address: str, controller: str) -> list[tuple[int, int]]:
    """The responses to REQUESTS. Each refused creation names a new topic."""
    first = f"{controller}-0"
    return [
        change_response(
            address,
            f"{controller}-client",
            f"{controller}-{number}" if api_key == CREATE_TOPICS else first,
            api_key,
            version,
            count,
        )
        for number, (api_key, version, count) in enumerate(REQUESTS)
    ]


def tool_outputs(process: ToolProcess, folder: Path, address: str, controller: str) -> list[tuple[int, str]]:
    """What kafka-topics prints when it creates a topic, and another with an exhausted quota.

    Other operations print the same, but their client waits for the end of the throttle time when it is closed.
    """
    tools = Tools(process, folder, address, {"client.id": f"{controller}-tool"})
    results = []
    for number, partitions in enumerate(("12", "1")):
        code, output = tools.run_with_code(
            "kafka-topics", "--create", "--topic", f"{controller}-tool-{number}", "--partitions", partitions
        )
        lines = [line for line in output.replace(controller, "CONTROLLER").splitlines() if "\tat " not in line]
        results.append((code, "\n".join(line.partition("] ERROR ")[2] or line for line in lines)))
    return results


def test_quotas_refuse_and_throttle_as_under_kafkas_controller(
    zookeeper: ServerHandle, tool_process: ToolProcess, tmp_path: Path
) -> None:
    connect_string = f"{zookeeper.address}/mutation-quotas"
    cluster = Cluster(tmp_path, connect_string, [1], {"listeners": f"PLAINTEXT://{HOST}:{{port}}", **WINDOW})
    with ExitStack() as stack:
        stack.callback(cluster.kill)
        cluster.start()
        broker = cluster.brokers[1].address
        admin = Tools(tool_process, tmp_path / "admin", broker)
        admin.run("kafka-configs", "--alter", "--entity-type", "clients", "--entity-default", "--add-config", QUOTA)
        probes = iter(range(1_000))

        def is_limited() -> bool:
            """Whether the broker has read the quota. Each probe is a new client with a bucket of its own."""
            number = next(probes)
            return change_response(broker, f"probe-{number}", f"probe-{number}", CREATE_TOPICS, 5, 11) == (0, 24)

        assert until(is_limited)
        under_kafka = change_responses(broker, "kafka")
        kafka_outputs = tool_outputs(tool_process, tmp_path / "kafka", broker, "kafka")
        kframe = InstanceProcess(connect_string, tmp_path / "kframe", 1000, "--insist", settings=WINDOW)
        stack.callback(kframe.kill)
        kframe.await_ready(active=True)
        assert change_responses(kframe.address, "kframe") == under_kafka
        assert tool_outputs(tool_process, tmp_path / "kframe-tool", broker, "kframe") == kafka_outputs
    assert under_kafka == [
        (0, 0),
        (89, 48),
        (89, 48),
        (0, 72),
        (89, 72),
        (0, 120),
        (89, 120),
        (89, 120),
        (0, 456),
    ]
    assert [code for code, _ in kafka_outputs] == [0, 1]
    assert "The throttling quota has been exceeded." in kafka_outputs[1][1]
