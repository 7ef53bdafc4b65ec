"""What this distribution offers to kframe: the transport to Kafka's own brokers."""

from __future__ import annotations

from kframe.hookspecs import TransportSpec, hookimpl


@hookimpl
def kframe_transports() -> list[TransportSpec]:
    """The transport; its module is imported when it is chosen."""
    return [
        TransportSpec("kafka", "kframe_kafka_wire.transport:open_transport", "Brokers of Kafka 2.4 to 3.9, over TCP.")
    ]
