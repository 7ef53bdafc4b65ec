"""Two controllers in one process that share only storage: one is active, the other is standby.

The program calls both in one thread, so that every run gives the same result.
"""

from __future__ import annotations

import kframe
from kframe.embedded import MemoryEnsemble, RecordingTransport
from kframe.plugin.cluster import NO_BROKER_EPOCH, Registration


def main() -> None:
    """Elect the first controller, end its session, and let the second one take over the cluster."""
    ensemble = MemoryEnsemble.from_cluster(kframe.ClusterState())
    ensemble.register_brokers(Registration(broker_id, NO_BROKER_EPOCH) for broker_id in (1, 2, 3))
    stores = [ensemble.connect(), ensemble.connect()]
    first, second = (
        kframe.ControllerBuilder(controller_id, store=store, transport=RecordingTransport()).build()
        for controller_id, store in zip((101, 102), stores, strict=True)
    )
    for controller in (first, second):
        controller.open()
    run_until_idle(first, second)
    report("first come", first, second)

    created = first.create_topics([kframe.NewTopic("orders", 4, 2)])
    refused = second.create_topics([kframe.NewTopic("orders", 4, 2)])
    run_until_idle(first, second)
    print("the first says", created.result(0)["orders"].name, "- the second says", refused.result(0)["orders"].name)

    stores[0].close()
    run_until_idle(second)
    report("the first is cut off", second)
    second.stop()


def run_until_idle(*controllers: kframe.Controller) -> None:
    """Run the controllers until all are idle. A step of one controller may create events for another."""
    while sum(controller.run_until_idle() for controller in controllers):
        pass


def report(heading: str, *controllers: kframe.Controller) -> None:
    """Print the role of each controller and the number of partitions that it knows."""
    for status in (controller.status() for controller in controllers):
        role = f"active, controller epoch {status.controller_epoch}" if status.active else "waiting"
        print(f"{heading}: {status.controller_id} {role}, partitions {status.gauges['GlobalPartitionCount']}")


if __name__ == "__main__":
    main()
