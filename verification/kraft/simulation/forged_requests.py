"""Requests from outside the cluster in the name of brokers and controllers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final
from uuid import UUID

from kframe.plugin.kraft import ControllerResult, records
from kframe.plugin.kraft_controller import (
    KraftContext,
    broker_events,
    directory_assignments,
    producer_ids,
    registration,
)
from verification.kraft.simulation.cluster import Cluster
from verification.kraft.simulation.expected.brokers import (
    compare_controller,
    compare_controller_removal,
    compare_producer_ids,
    compare_registration,
)
from verification.kraft.simulation.expected.heartbeats import CORDONED_LEVEL
from verification.kraft.simulation.expected.partitions import compare_assignments
from verification.kraft.simulation.options import CONTROLLER

#: Brokers and a controller without a machine.
_BROKERS: Final = (61, 62)
_CONTROLLER: Final = 91
_RESERVED: Final = UUID(int=99)
_OFFLINE: Final = UUID(int=7)


def register_broker(cluster: Cluster, random: Random) -> None:
    """Register a process of a broker: of one of the machines again, or in its place, or of one that has none."""
    running = [broker_id for broker_id, broker in cluster.brokers.items() if broker.is_running]
    broker_id = random.choice((*running, *running, *_BROKERS))
    request = _request(cluster, random, broker_id)
    version = int(cluster.options.is_dynamic)
    cluster.admin.ask(
        "register broker",
        lambda context, end: registration.register_broker(context, request, end, version),
        partial(compare_registration, request, version),
    )


def _request(cluster: Cluster, random: Random, broker_id: int) -> registration.BrokerRegistrationRequest:
    """A registration with at most two mutations. No other process takes the place of a machine's."""
    process = next(iter(cluster.brokers.values())) if broker_id in _BROKERS else cluster.brokers[broker_id]
    request = process.registration_request()
    if broker_id in _BROKERS:
        request = replace(
            request,
            broker_id=broker_id,
            incarnation_id=UUID(int=random.getrandbits(128)),
            rack=random.choice((None, "zone-1")),
            directories=(UUID(int=1000 * broker_id),),
        )
    incarnation_id = request.incarnation_id
    for _ in range(random.choice((0, 1, 1, 2))):
        request = _mutated(cluster, random, request)
    return request if broker_id in _BROKERS else replace(request, incarnation_id=incarnation_id)


def _mutated(
    cluster: Cluster, random: Random, request: registration.BrokerRegistrationRequest
) -> registration.BrokerRegistrationRequest:
    former = cluster.rules.image.brokers.get(request.broker_id)
    # Those of a broker without a registration would be accepted.
    others = [
        directory
        for broker_id, broker in cluster.rules.image.brokers.items()
        if broker_id != request.broker_id and broker_id in cluster.brokers and cluster.brokers[broker_id].is_running
        for directory in broker.directories
    ]
    features = list(request.features)
    position = random.randrange(len(features)) if features else 0
    dropped = tuple(features[:position] + features[position + 1 :])
    narrow = tuple(
        records.BrokerFeature(name=each.name, min_supported_version=low, max_supported_version=high)
        if number == position
        else each
        for number, each in enumerate(features)
        for low, high in [random.choice(((0, 0), (1, 1), (7, 7), (7, 20), (30, 33), (34, 35)))]
    )
    unknown = records.BrokerFeature(
        name="unknown.version", min_supported_version=random.randint(0, 1), max_supported_version=2
    )
    return random.choice(
        (
            replace(request, cluster_id="another"),
            replace(request, incarnation_id=UUID(int=random.getrandbits(128))),
            replace(request, incarnation_id=UUID(int=random.getrandbits(128))),
            replace(request, previous_broker_epoch=-1 if former is None else former.broker_epoch),
            replace(request, detects_clean_shutdown=False),
            replace(request, is_migrating_zk_broker=True),
            replace(request, directories=()),
            replace(request, directories=(*request.directories, _RESERVED)),
            replace(request, directories=request.directories * 2),
            replace(request, directories=(*request.directories, random.choice(others or [_RESERVED]))),
            replace(request, features=dropped),
            replace(request, features=narrow),
            replace(request, features=(*features, unknown)),
        )
    )


def send_heartbeat(cluster: Cluster, random: Random) -> None:
    """Send a heartbeat of a process that may be gone, or one that asks to be fenced."""
    broker_id = random.choice((*cluster.machines, *_BROKERS))
    broker = cluster.rules.image.brokers.get(broker_id)
    epoch = -1 if broker is None else broker.broker_epoch
    level = cluster.rules.image.features.get("metadata.version", 0)
    heartbeat = broker_events.BrokerHeartbeat(
        broker_id,
        random.choice((epoch, epoch, epoch - 1, 0)),
        random.choice((0, epoch, cluster.controllers.history.end)),
        want_fence=True,
        want_shut_down=broker_id in _BROKERS and random.random() < 0.5,
        offline_directories=random.choice(((), (_OFFLINE,))),
        # Below the level that stores them they do not matter.
        cordoned_directories=() if level < CORDONED_LEVEL else None if broker is None else broker.cordoned,
    )
    cluster.admin.send_heartbeat(heartbeat)


def assign_again(cluster: Cluster, random: Random) -> None:
    """Assign replicas to the directories that they have, or to an offline one: in partitions with an ELR, if any."""
    image = cluster.rules.image
    keys = sorted(image.partitions)
    keys = [key for key in keys if image.partitions[key].elr] or keys
    for key in random.sample(keys, min(2, len(keys))):
        state = image.partitions[key]
        broker_id = random.choice(state.replicas)
        broker = image.brokers.get(broker_id)
        if broker is None or state.directory_of(broker_id) not in broker.directories:
            continue
        node = broker_id, broker.broker_epoch
        directory = state.directory_of(broker_id)
        if random.random() < 0.3 and broker_id in state.isr and not state.elr and state.leader not in (-1, broker_id):
            directory = _OFFLINE  # A leader would be lost until another event, since its old directory counts.
        assignments = [directory_assignments.DirectoryAssignment(directory, *key)]
        cluster.admin.ask(
            "assign again",
            partial(_assign, node, assignments),
            partial(compare_assignments, node, assignments),
            is_repeatable=True,
        )


def _assign(
    node: tuple[int, int],
    assignments: Sequence[directory_assignments.DirectoryAssignment],
    context: KraftContext,
    end: int,
) -> ControllerResult[list[directory_assignments.DirectoryAssignmentResult]]:
    return directory_assignments.assign_directories(context, *node, assignments)


def allocate_producer_ids(cluster: Cluster, random: Random) -> None:
    """Allocate a block of producer ids for a broker, or for a process that is gone."""
    broker_id = random.choice((*cluster.machines, 99))
    epochs = [broker.broker_epoch for broker in cluster.rules.image.brokers.values()]
    broker = cluster.rules.image.brokers.get(broker_id)
    node = broker_id, random.choice(epochs or [0]) if broker is None or random.random() < 0.2 else broker.broker_epoch
    cluster.admin.ask(
        "allocate producer ids",
        lambda context, end: producer_ids.allocate_producer_ids(context, *node),
        partial(compare_producer_ids, node),
    )


def register_controller(cluster: Cluster, random: Random) -> None:
    """Register another controller, and remove the registration soon."""
    record = records.RegisterControllerRecord(
        controller_id=_CONTROLLER,
        incarnation_id=UUID(int=random.getrandbits(128)),
        zk_migration_ready=False,
        end_points=(),
        features=(),
    )
    cluster.admin.ask(
        "register controller",
        lambda context, end: registration.register_controller(context, record),
        partial(compare_controller, record),
    )
    cluster.scheduler.after(1_000.0, lambda: unregister_controller(cluster, random))


def unregister_controller(cluster: Cluster, random: Random) -> None:
    """Remove the registration of a controller: of that one, of an unknown one, or of the active one."""
    controller_id = random.choice((_CONTROLLER, _CONTROLLER, 92, CONTROLLER, CONTROLLER))
    cluster.admin.ask(
        "unregister controller",
        lambda context, end: registration.unregister_controller(context, controller_id),
        partial(compare_controller_removal, controller_id),
    )
