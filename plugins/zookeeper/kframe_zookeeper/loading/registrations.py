"""Read the registrations of brokers, and log those that no live ZooKeeper-mode broker of this cluster has written.

As in Kafka, a registration counts as a live broker while its znode exists. The exception is a broker with the id of
this instance, which is left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kframe.plugin import ZnodeError
from kframe.plugin.cluster import Registration
from kframe.plugin.znodes import is_controller_only
from kframe_zookeeper.bulk.nodes import Results
from kframe_zookeeper.loading.memory import CachedBroker, Memory
from kframe_zookeeper.role.connection import Connection
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.brokers import decode_broker


def begin_registrations(connection: Connection, broker_ids: Sequence[str]) -> Iterator[tuple[int, Results]]:
    """Request the registrations of brokers. The first requests are sent at once."""
    return connection.results([f"{paths.BROKER_IDS}/{name}" for name in broker_ids])


def reread_registrations(connection: Connection, memory: Memory) -> tuple[tuple[Registration, ...], list[str]]:
    """``decode_registrations`` of all present brokers. Watches the list.

    Known brokers are requested together with the list, which usually saves a round trip.
    """
    known = [path.rpartition("/")[2] for path in memory.brokers]
    listing, responses = connection.watches.begin_lists([paths.BROKER_IDS]), begin_registrations(connection, known)
    (names,) = connection.await_lists([paths.BROKER_IDS], listing)
    if set(names) <= set(known):
        return decode_registrations(memory, known, responses)
    deque(responses, 0)
    return decode_registrations(memory, names, begin_registrations(connection, names))


def decode_registrations(
    memory: Memory, broker_ids: Sequence[str], responses: Iterator[tuple[int, Results]]
) -> tuple[tuple[Registration, ...], list[str]]:
    """The registrations in these nodes by broker id, and the paths of all brokers' nodes, to be watched.

    A registration that has become malformed keeps its last content: the broker lives while its znode exists.
    """
    broker_paths, current, owners = [], dict[str, CachedBroker](), dict[str, int]()
    nodes = (results.node(i) for _, results in responses for i in range(len(results.code)))
    for name, node in zip(broker_ids, nodes, strict=True):
        path = f"{paths.BROKER_IDS}/{name}"
        if node is None or is_controller_only(node.data):
            continue  # Deleted meanwhile, which the watch on the list reports; or no broker.
        broker_paths.append(path)
        owners[path] = node.owner
        known = memory.brokers.get(path)
        if known is not None and known.registration.broker_epoch == node.czxid:
            current[path] = known
            if known.data == node.data:
                memory.repair(path)
                continue
        try:
            registration = decode_broker(name, node.data, node.czxid)
            refuse_own_id(memory, registration)
            current[path] = CachedBroker(node.data, registration)
            memory.repair(path)
        except ZnodeError as error:
            memory.quarantine(path, error, "keeps its last valid value" if path in current else "is left out")
    for path in [
        path for path in memory.broken if path.startswith(f"{paths.BROKER_IDS}/") and path not in broker_paths
    ]:
        memory.repair(path)
    memory.brokers = current
    loaded = tuple(sorted((broker.registration for broker in current.values()), key=lambda broker: broker.broker_id))
    warn_of_registrations(memory, loaded, owners)
    return loaded, broker_paths


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
