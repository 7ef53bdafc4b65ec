"""Two controllers in one process that know of each other only what storage says: one leads, the other waits.

Both are driven by hand, in one thread, so that each run is like the last.
"""

from __future__ import annotations

import kframe
from kframe.embedded import MemoryEnsemble, RecordingTransport
from kframe.plugin.cluster import NO_BROKER_EPOCH, Registration


def main() -> None:
    """Let the first take the role, lose its session, and see the second go on with what the first has done."""
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
    """Let them work until nothing is left to do for any of them: what one does may give the other work."""
    while sum(controller.run_until_idle() for controller in controllers):
        pass


def report(what: str, *controllers: kframe.Controller) -> None:
    """Print who is active, and how many partitions it leads the cluster with."""
    for status in (controller.status() for controller in controllers):
        role = f"active, controller epoch {status.controller_epoch}" if status.active else "waiting"
        print(f"{what}: {status.controller_id} {role}, partitions {status.gauges['GlobalPartitionCount']}")


if __name__ == "__main__":
    main()
