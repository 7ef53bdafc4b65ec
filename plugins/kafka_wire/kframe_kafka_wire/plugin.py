"""The extension points of kframe that this distribution implements: a transport, a server, an admin client and
live clusters."""

from __future__ import annotations

from kframe.plugin import AdminSpec, ClusterSpec, ServerSpec, TransportSpec, hookimpl


@hookimpl
def kframe_transports() -> list[TransportSpec]:
    """The transport. Its module is imported on first use."""
    return [
        TransportSpec(
            "kafka",
            "kframe_kafka_wire.requests.transport:open_transport",
            "Brokers of Kafka 2.4 to 3.9, over TCP.",
            "kframe_kafka_wire.sandbox.fake_cluster:open_fake_brokers",
        )
    ]


@hookimpl
def kframe_admins() -> list[AdminSpec]:
    """The admin client of any Kafka cluster."""
    return [
        AdminSpec(
            "kafka", "kframe_kafka_wire.admin.client:open_admin", "Clusters of Kafka since 2.4, by their admin API."
        )
    ]


@hookimpl
def kframe_clusters() -> list[ClusterSpec]:
    """Live clusters, for ``kframe snapshot capture``."""
    return [
        ClusterSpec(
            "kafka", "kframe_kafka_wire.admin.capture:open_cluster", "Clusters of Kafka 2.4 to 4, by their brokers."
        )
    ]


@hookimpl
def kframe_servers() -> list[ServerSpec]:
    """The server. Its module is imported on first use."""
    return [
        ServerSpec(
            "kafka", "kframe_kafka_wire.server.server:make_server", "What brokers, clients and tools of Kafka ask."
        )
    ]
