"""Faults of processes: the ensemble's leader freezes, and everything is killed at once and started in some order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kframe.testing.waiting import until
from verification.kafka_wire.campaigns.fault_cluster import FAULT_S, GROUPS, Fault, FaultRun
from verification.kafka_wire.replication import SESSION_MS

TEXT: Final = """\
The leader of the ensemble is frozen (SIGSTOP), and continues (SIGCONT) at the end of the fault.

In the other rows all servers, brokers and instances are frozen, then killed (SIGKILL), so that none reacts to the end
of another. They start in the given order: at once, or each group 10 s after the previous one, when sessions have ended.
`recovered` counts from the time when all groups have been started and the ensemble serves clients. It includes the
start of brokers, so the limit does not apply. A process that ends because another is not up yet is started again, as a
supervisor does."""
#: Longer than a session.
_PAUSE_S: Final = SESSION_MS / 1000 + 2


@contextmanager
def _frozen_leader(run: FaultRun) -> Iterator[None]:
    leader = run.cluster.ensemble.leader()
    others = [server for server in run.cluster.ensemble.servers if server is not leader]
    leader.pause()
    try:
        until(lambda: False, FAULT_S)
        if not until(lambda: any(server.mode() == "leader" for server in others)):
            run.violations.append("the other servers have elected no leader")
        run.effect = "another server leads"
        yield
    finally:
        leader.resume()


def _killed(order: tuple[str, ...], pause_s: float) -> Fault:
    """Kill everything, and start the groups in this order."""

    @contextmanager
    def inject(run: FaultRun) -> Iterator[None]:
        groups = run.groups
        processes = [process for name in order for process in groups[name]]
        for process in processes:
            process.pause()
        for process in processes:
            process.kill()
        for number, name in enumerate(order):
            if number:
                until(lambda: False, pause_s)
            for process in groups[name]:
                run.start(process)
        for server in run.cluster.ensemble.servers:
            server.await_serving()
        run.restarts = True
        run.effect = f"{len(processes)} processes killed"
        yield

    pause = f", {pause_s:.0f} s between" if pause_s else ", at once"
    return Fault(f"all killed; start: {', '.join(order)}{pause}", inject)


FAULTS: Final = [
    Fault("leader of the ensemble frozen", _frozen_leader),
    *(_killed(order, pause_s) for pause_s in (0.0, _PAUSE_S) for order in itertools.permutations(GROUPS)),
]
