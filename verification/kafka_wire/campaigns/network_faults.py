"""Faults of the network: links that are blocked, lossy, slow or flapping."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kframe.testing.waiting import until
from verification.kafka_wire.campaigns.fault_cluster import (
    BROKERS,
    CLIENT,
    FAULT_S,
    INSTANCES,
    SERVERS,
    Fault,
    FaultRun,
)
from verification.zookeeper.network import BLOCKED, Impairment

TEXT: Final = """\
The link is impaired between one machine and others: from it (one way), to it (answers), or both. The controller is the
active instance. Except for links between brokers, the leader of partition 0 is killed when the fault begins, and
restarted when another broker leads, so the controller has work. The fault lasts 12 s longer."""
CONTROLLER_ZOOKEEPER, CONTROLLER_BROKERS = "controller to ZooKeeper", "controller to brokers"
BROKER_BROKERS, SERVER_ALL = "broker 1 to brokers", "ensemble leader to all"
LINKS: Final = (CONTROLLER_ZOOKEEPER, CONTROLLER_BROKERS, BROKER_BROKERS, SERVER_ALL)
_SLOW: Final = Impairment(delay_s=0.5)
_LOSSY: Final = Impairment(loss=0.3)
_FLAPPING: Final = Impairment(flap_s=2.0)
#: By kind: the impairment from the first machine of the link, and of packets to it.
KINDS: Final[dict[str, tuple[Impairment | None, Impairment | None]]] = {
    "blocked one way": (BLOCKED, None),
    "answers blocked": (None, BLOCKED),
    "blocked both ways": (BLOCKED, BLOCKED),
    "30 % loss": (_LOSSY, _LOSSY),
    "500 ms delay": (_SLOW, _SLOW),
    "flapping every 2 s": (_FLAPPING, _FLAPPING),
}


def impaired(link: str, kind: str, *, until_elected: bool = False) -> Fault:
    """A link that is impaired until another controller is elected, or for FAULT_S.

    In the second case the controller has work: a leader is killed and restarted first, unless the link is one of
    brokers. Then ISRs change anyway.
    """

    @contextmanager
    def inject(run: FaultRun) -> Iterator[None]:
        network, epoch, (machine, others) = run.cluster.network, run.controller_epoch, _ends(run, link)
        before = _packets(run, machine, others)
        forth, back = KINDS[kind]
        try:
            if forth is not None:
                network.impair(machine, others, forth)
            if back is not None:
                network.impair(others, machine, back)
            if until_elected:
                assert until(lambda: run.controller_epoch > epoch), run.standby.log
            else:
                if link != BROKER_BROKERS:
                    run.bounce_leader()
                until(lambda: False, FAULT_S)
            dropped, forwarded = (now - then for now, then in zip(_packets(run, machine, others), before, strict=True))
            run.effect = f"{dropped:,} packets dropped, {forwarded:,} forwarded"
            yield
        finally:
            network.heal()

    return Fault(f"{link}, {kind}", inject)


FAULTS: Final = [impaired(link, kind) for link in LINKS for kind in KINDS]


def _ends(run: FaultRun, link: str) -> tuple[list[str], list[str]]:
    """The first machine of a link, and those at its other ends."""
    if link in (CONTROLLER_ZOOKEEPER, CONTROLLER_BROKERS):
        return [INSTANCES[run.active.number]], list(SERVERS if link == CONTROLLER_ZOOKEEPER else BROKERS)
    if link == BROKER_BROKERS:
        return [BROKERS[0]], list(BROKERS[1:])
    ensemble = run.cluster.ensemble
    leader = SERVERS[ensemble.servers.index(ensemble.leader())]
    return [leader], [name for name in run.cluster.machines if name not in (leader, CLIENT)]


def _packets(run: FaultRun, machine: list[str], others: list[str]) -> tuple[int, int]:
    """Packets of the link that were dropped and forwarded so far."""
    network = run.cluster.network
    return (
        network.dropped(machine, others) + network.dropped(others, machine),
        network.forwarded(machine, others) + network.forwarded(others, machine),
    )
