"""Two controllers in one process that communicate only through storage: one is active, the other stands by.

The program runs both in one thread, so that every run is the same.
"""

from __future__ import annotations

import kframe
from kframe.embedded import MemoryEnsemble, RecordingTransport
from kframe.plugin.cluster import NO_BROKER_EPOCH, Registration


def main() -> None:
    """Let the first controller take the role and lose its session, and see the second continue its work."""
    ensemble = MemoryEnsemble.from_cluster(kframe.ClusterState())
    ensemble.register_brokers(Registration(broker_id, NO_BROKER_EPOCH) for broker_id in (1, 2, 3))
    stores = [ensemble.connect(), ensemble.connect()]
    first, second = (
        kframe.ControllerBuilder(controller_id, store=store, transport=RecordingTransport()).build()
        for controller_id, store in zip((101, 102), stores, strict=True)
    )
    for controller in (first, second):
        controller.open()
    rest(first, second)
    report("first come", first, second)

    created = first.create_topics([kframe.NewTopic("orders", 4, 2)])
    refused = second.create_topics([kframe.NewTopic("orders", 4, 2)])
    rest(first, second)
    print("the first says", created.result(0)["orders"].name, "- the second says", refused.result(0)["orders"].name)

    stores[0].close()
    rest(second)
    report("the first is cut off", second)
    second.stop()


def rest(*controllers: kframe.Controller) -> None:
    """Run all controllers until idle: the work of one may cause work for another."""
    while sum(controller.run_until_idle() for controller in controllers):
        pass


def report(what: str, *controllers: kframe.Controller) -> None:
    """Print the active controller and the number of partitions of its cluster."""
    for status in (controller.status() for controller in controllers):
        role = f"active, controller epoch {status.controller_epoch}" if status.active else "waiting"
        print(f"{what}: {status.controller_id} {role}, partitions {status.gauges['GlobalPartitionCount']}")


if __name__ == "__main__":
    main()
