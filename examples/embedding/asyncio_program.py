"""A controller in an asyncio program: the controller has its own thread, and the event loop awaits its futures."""

from __future__ import annotations

import asyncio

import kframe
from kframe.embedded import EmbeddedBrokers, MemoryEnsemble, VirtualClock
from kframe.plugin.cluster import NO_BROKER_EPOCH, Registration


async def main() -> None:
    """Create a topic. Then reassign a partition and elect a leader at the same time."""
    ensemble = MemoryEnsemble.from_cluster(kframe.ClusterState())
    ensemble.register_brokers(Registration(broker_id, NO_BROKER_EPOCH) for broker_id in (1, 2, 3, 4))
    builder = kframe.ControllerBuilder(1000, store=ensemble.connect(), transport=EmbeddedBrokers(VirtualClock()))
    controller = builder.build()
    controller.start()
    try:
        created = await asyncio.wrap_future(controller.create_topics([kframe.NewTopic("orders", 12, 3)]))
        print("created:", {topic: code.name for topic, code in created.items()})
        moved, elected = await asyncio.gather(
            asyncio.wrap_future(controller.reassign({("orders", 0): [4, 3, 2]})),
            asyncio.wrap_future(controller.elect_leaders(partitions=[("orders", 1)])),
        )
        print("moved:", moved.by_partition()["orders", 0].name)
        print("elected:", elected.by_partition()["orders", 1].name)
        print("partitions:", controller.status().gauges["GlobalPartitionCount"])
    finally:
        await asyncio.to_thread(controller.stop)  # stop blocks until the current event is over


if __name__ == "__main__":
    asyncio.run(main())
