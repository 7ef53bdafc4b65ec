"""Faults, and the requests of administrators, that a simulation plays at random times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Final, TypeAlias

from kframe.plugin.kraft import ControllerResult
from kframe.plugin.kraft_controller import (
    KraftElection,
    ResourceType,
    configs,
    controller_apis,
    elections,
    feature_updates,
    reassignment,
    registration,
    topic_requests,
)
from verification.kraft.simulation.cluster import Cluster
from verification.kraft.simulation.expected import (
    compare_elections,
    compare_reassignment,
    compare_reassignments,
    compare_unregistration,
)
from verification.kraft.simulation.options import CONTROLLER

Action: TypeAlias = Callable[[Cluster, Random], None]
_SET: Final = configs.KraftConfigOperation.SET


def kill_controller(cluster: Cluster, random: Random) -> None:
    """End its process between two steps, with or without the power."""
    cluster.controllers.crash(loses_unsynced=random.random() < 0.5)


def stop_at_operation(cluster: Cluster, random: Random) -> None:
    """End its process in the middle of one of its next operations on the disk, and lose what was not synced."""
    faults = cluster.controllers.faults
    faults.loses_unsynced = random.random() < 0.7
    faults.stop_at = faults.operations + random.randint(1, 8)


def fill_disk(cluster: Cluster, random: Random) -> None:
    """Leave the controller little room for a while."""
    cluster.controllers.limit_space(random.randint(50, 2_000), random.uniform(500, 10_000))


def fail_sync(cluster: Cluster, random: Random) -> None:
    """Let the next sync of the controller fail."""
    cluster.controllers.faults.fails_syncs = True


def slow_disk(cluster: Cluster, random: Random) -> None:
    """Make syncs slow until the process ends."""
    process = cluster.controllers.process
    if process is not None:
        process.slowness = random.choice((20.0, 200.0))


def stop_controller(cluster: Cluster, random: Random) -> None:
    """Stop and start the controller in an orderly way."""
    cluster.controllers.stop()


def freeze_controller(cluster: Cluster, random: Random) -> None:
    """Freeze the controller, for up to three sessions."""
    process = cluster.controllers.process
    if process is not None:
        process.freeze()
        cluster.scheduler.after(random.choice((300, 3_000, 8_000, 25_000)), process.resume)


def kill_broker(cluster: Cluster, random: Random) -> None:
    """Kill a broker; it starts again after a while."""
    broker_id = cluster.random_broker()
    cluster.brokers[broker_id].kill()
    cluster.start_later(broker_id, random.choice((100, 2_000, 12_000, 30_000)))


def stop_broker(cluster: Cluster, random: Random) -> None:
    """Stop a broker by a controlled shutdown; it starts again after a while."""
    broker_id = cluster.random_broker()
    cluster.stop_broker(broker_id, random.choice((100, 2_000, 15_000)))


def roll_brokers(cluster: Cluster, random: Random) -> None:
    """Stop all brokers at nearly the same time."""
    for broker_id in cluster.brokers:
        if cluster.brokers[broker_id].is_running:
            cluster.stop_broker(broker_id, random.uniform(100, 5_000))


def freeze_broker(cluster: Cluster, random: Random) -> None:
    """Freeze a broker, for up to three sessions."""
    broker = cluster.brokers[cluster.random_broker()]
    broker.freeze()
    cluster.scheduler.after(random.choice((500, 5_000, 12_000, 25_000)), broker.resume)


def fail_directory(cluster: Cluster, random: Random) -> None:
    """Fail a log directory of a broker, which stays broken."""
    broker = cluster.brokers[cluster.random_broker()]
    alive = [name for name, is_alive in broker.machine.model.disks.alive.items() if is_alive]
    if len(alive) > 1 and broker.is_running and not broker.is_frozen and broker.machine.model.running:
        broker.fail_directory(random.choice(alive))


def cut_controller(cluster: Cluster, random: Random) -> None:
    """Cut a broker from the controller, in one direction or both."""
    broker_id = cluster.random_broker()
    _cut(cluster, random, broker_id, CONTROLLER)


def cut_brokers(cluster: Cluster, random: Random) -> None:
    """Cut two brokers from each other, in one direction or both."""
    source, target = random.sample(sorted(cluster.brokers), 2)
    _cut(cluster, random, source, target)


def _cut(cluster: Cluster, random: Random, source: int, target: int) -> None:
    for_ms = random.choice((500.0, 4_000.0, 11_000.0, 25_000.0))
    ways = random.choice((((source, target),), ((target, source),), ((source, target), (target, source))))
    for way in ways:
        cluster.network.cut(*way, for_ms)


def create_topic(cluster: Cluster, random: Random) -> None:
    """Create a topic."""
    cluster.admin.create_topic(random.randint(1, 4), random.randint(1, min(3, len(cluster.brokers))))


def delete_topic(cluster: Cluster, random: Random) -> None:
    """Delete a topic."""
    if cluster.admin.topics:
        cluster.admin.delete_topic(random.choice(sorted(cluster.admin.topics)))


def add_partitions(cluster: Cluster, random: Random) -> None:
    """Add partitions to a topic."""
    grown = [topic_requests.CreatePartitionsTopic(name, random.randint(2, 6)) for name in _topic(cluster, random)]
    cluster.admin.ask("add partitions", lambda context, end: controller_apis.create_partitions(context, grown))


def reassign(cluster: Cluster, random: Random) -> None:
    """Reassign a partition to random brokers."""
    for name in _topic(cluster, random):
        target = tuple(random.sample(sorted(cluster.brokers), random.randint(1, 3)))
        _reassign(cluster, reassignment.RequestedReassignment(name, random.randint(0, 1), target))


def cancel(cluster: Cluster, random: Random) -> None:
    """Cancel a reassignment."""
    for name in _topic(cluster, random):
        _reassign(cluster, reassignment.RequestedReassignment(name, random.randint(0, 1)))


def _reassign(cluster: Cluster, requested: reassignment.RequestedReassignment) -> None:
    cluster.admin.ask(
        "reassign" if requested.replicas else "cancel",
        lambda context, end: reassignment.reassign_partitions(context, [requested]),
        partial(compare_reassignment, requested),
    )


def list_reassignments(cluster: Cluster, random: Random) -> None:
    """List all reassignments in progress."""
    cluster.admin.ask(
        "list reassignments",
        lambda context, end: ControllerResult((), reassignment.list_reassignments(context, None)),
        compare_reassignments,
    )


def elect(cluster: Cluster, random: Random) -> None:
    """Elect preferred leaders, rarely unclean ones: of all partitions, or of named ones."""
    kind = KraftElection.UNCLEAN if random.random() < 0.1 else KraftElection.PREFERRED
    cluster.rules.is_unclean_requested |= kind is KraftElection.UNCLEAN
    named = [(name, number) for name in _topic(cluster, random) for number in range(random.randint(1, 3))]
    if random.random() < 0.5:
        cluster.admin.ask(
            f"elect {kind.name.lower()}", lambda context, end: elections.elect_leaders(context, kind, None)
        )
    else:
        cluster.admin.ask(
            f"elect {kind.name.lower()}",
            lambda context, end: elections.elect_leaders(context, kind, named),
            partial(compare_elections, kind, named),
        )


def configure(cluster: Cluster, random: Random) -> None:
    """Set ``min.insync.replicas`` of a topic or of the cluster, rarely allow unclean elections."""
    is_unclean = random.random() < 0.1
    setting = "unclean.leader.election.enable" if is_unclean else "min.insync.replicas"
    value = "true" if is_unclean else str(random.randint(1, 3))
    resources = [(int(ResourceType.TOPIC), name) for name in _topic(cluster, random)]
    if not resources or (not is_unclean and random.random() < 0.2):
        resources = [(int(ResourceType.BROKER), "")]
    change = configs.KraftConfigChange(resources[0], {setting: (_SET, value)})
    cluster.admin.ask("configure", lambda context, end: controller_apis.alter_configs(context, [change]))


def raise_level(cluster: Cluster, random: Random) -> None:
    """Raise ``metadata.version`` by one, or turn ELR on."""
    upgrade = feature_updates.UpgradeType.UPGRADE
    level = cluster.rules.image.features.get("metadata.version", 0) + 1
    updates = {"metadata.version": (level, upgrade)}
    if random.random() < 0.4:
        updates = {"eligible.leader.replicas.version": (1, upgrade)}
    version = int(cluster.options.is_dynamic)
    cluster.admin.ask(
        "raise level",
        lambda context, end: feature_updates.update_features(context, updates, kraft_version=version),
    )


def unregister(cluster: Cluster, random: Random) -> None:
    """Remove the registration of a broker that is down."""
    down = sorted(key for key, broker in cluster.brokers.items() if not broker.is_running)
    if down:
        broker_id = random.choice(down)
        cluster.admin.ask(
            "unregister",
            lambda context, end: registration.unregister_broker(context, broker_id),
            partial(compare_unregistration, broker_id),
        )


def _topic(cluster: Cluster, random: Random) -> list[str]:
    """A known topic, if there is one."""
    known = sorted(cluster.admin.topics)
    return [random.choice(known)] if known else []


#: Each action with its weight.
ACTIONS: Final[Mapping[Action, int]] = {
    kill_controller: 4,
    stop_at_operation: 6,
    fill_disk: 1,
    fail_sync: 1,
    slow_disk: 1,
    stop_controller: 2,
    freeze_controller: 3,
    kill_broker: 8,
    stop_broker: 6,
    roll_brokers: 1,
    freeze_broker: 4,
    fail_directory: 3,
    cut_controller: 6,
    cut_brokers: 6,
    create_topic: 6,
    delete_topic: 2,
    add_partitions: 3,
    reassign: 8,
    cancel: 3,
    list_reassignments: 2,
    elect: 4,
    configure: 4,
    raise_level: 3,
    unregister: 2,
}
