"""Faults that a simulation plays: of the controller, of brokers, of disks and of the network."""

from __future__ import annotations

from random import Random

from verification.kraft.simulation.cluster import Cluster
from verification.kraft.simulation.options import CONTROLLER


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


def stop_during_failover(cluster: Cluster, random: Random) -> None:
    """Stop a broker, and the controller while it waits."""
    stop_broker(cluster, random)
    cluster.scheduler.after(random.uniform(5, 300), cluster.controllers.stop)


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


def cordon_directories(cluster: Cluster, random: Random) -> None:
    """Cordon some log directories of a broker: none, some or all of them. Often, others of them later."""
    machine = cluster.machines[cluster.random_broker()]

    def cordon() -> None:
        machine.cordoned = tuple(directory for directory in machine.directories.values() if random.random() < 0.5)

    cordon()
    if random.random() < 0.7:
        cluster.scheduler.after(random.choice((3_000.0, 9_000.0)), cordon)


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
