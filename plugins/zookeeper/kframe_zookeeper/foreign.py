"""Log KRaft controllers, and registrations that no live ZooKeeper-mode broker of this cluster has written.

As in Kafka, a registration counts as a live broker while its znode exists. The exception is a broker with the id of
this instance, which is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import UNSET

from kframe.plugin import ZnodeError
from kframe.plugin.cluster import Registration
from kframe.plugin.znodes import ControllerZnode
from kframe_zookeeper import paths
from kframe_zookeeper.memory import Memory

#: A KRaft controller writes its epoch; any other writes -1 or nothing (3.9 ``KafkaZkClient``, ``kraftEpoch``).
_KRAFT_EPOCH_MIN: Final = 1


def kraft_epoch(record: ControllerZnode) -> int | None:
    """The epoch of the KRaft controller that owns ``/controller`` during a migration. None for any other controller."""
    epoch = record.kraft_controller_epoch
    return None if epoch is UNSET or epoch < _KRAFT_EPOCH_MIN else epoch


def warn_of_kraft(memory: Memory, record: ControllerZnode) -> None:
    """Log a KRaft controller that has the role."""
    epoch = kraft_epoch(record)
    memory.warn(paths.CONTROLLER, None if epoch is None else (
        f"KRaft controller {record.brokerid} holds the role: {paths.CONTROLLER} field kraftControllerEpoch: found "
        f"{epoch}, expected -1; the cluster is being migrated to KRaft, and its role is never taken"
    ))  # fmt: skip


def refuse_own_id(memory: Memory, registration: Registration) -> None:
    """Raise ZnodeError if a broker has registered under the id of this instance.

    Such a broker takes ``/controller`` for its own (Kafka 3.9 ``KafkaController.elect``, ``isActive``). If metadata
    named it, brokers and clients would send it their controller requests.
    """
    instance = memory.instance
    if instance is None or registration.broker_id != instance.controller_id:
        return
    addresses = ", ".join(
        f"{endpoint.listener}://{endpoint.host}:{endpoint.port}" for endpoint in registration.endpoints
    )
    raise ZnodeError(
        paths.broker_path(registration.broker_id),
        f"a broker at {addresses}, whose id {registration.broker_id} is the id of this instance ({instance})",
        "an id of its own: stop that broker and give it another id, or restart kframe with another id",
    )


def warn_of_registrations(memory: Memory, registrations: Iterable[Registration], owners: Mapping[str, int]) -> None:
    """Log registrations that are persistent, or that advertise the address of another broker.

    ``owners``: the owning session of each registration by path, 0 for a persistent znode.
    """
    advertised: dict[tuple[str, int], int] = {}
    for registration in registrations:
        path, problem = paths.broker_path(registration.broker_id), None
        if owners.get(path) == 0:
            problem = f"broker {registration.broker_id}: {path}: found a persistent node, expected an ephemeral one"
        for endpoint in registration.endpoints:
            other = advertised.setdefault((endpoint.host, endpoint.port), registration.broker_id)
            if other != registration.broker_id:
                problem = (
                    f"broker {registration.broker_id}: {path} field endpoints: found {endpoint.listener}://"
                    f"{endpoint.host}:{endpoint.port}, the address of broker {other} too, expected one of its own"
                )
        memory.warn(path, problem)
