"""The steps that a broker can take alone, computed once for each of its values."""

from __future__ import annotations

from dataclasses import dataclass

from kframe_simulator.search import brokers as rules
from kframe_simulator.search.values import Label, Pool, SearchBroker


@dataclass(frozen=True, slots=True)
class BrokerSteps:
    """The steps that a broker can take alone. They are labels, and the numbers of the resulting values."""

    leads: bool
    proposals: tuple[tuple[Label, int], ...]
    read: tuple[Label, int] | None
    back: tuple[Label, int, int]
    """The broker after its next registration."""
    died: tuple[Label, int]
    lapses: Label
    leaving: tuple[Label, int] | None


def broker_steps(own: int, broker: SearchBroker, pool: Pool) -> BrokerSteps:
    """The steps of broker ``own``. ``pool`` numbers the resulting values."""
    back = broker._replace(epoch=broker.epoch + 1) if broker.up else rules.started(broker)
    leaving = None
    if broker.up and broker.controller and broker.leaving == (0, 0):
        asking = broker._replace(leaving=(broker.controller, broker.epoch))
        leaving = ("broker", own, "asks to shut down"), pool.number(asking)
    proposed = rules.proposals(own, broker) if broker.up else []
    reads_answer = ("broker", own, "reads the answer", broker.answer)
    return BrokerSteps(
        leads=rules.leads(own, broker),
        proposals=tuple(
            (("broker", own, "proposes ISR", isr), pool.number(rules.propose(broker, isr))) for isr in proposed
        ),
        read=(reads_answer, pool.number(rules.read_response(broker))) if broker.answer and broker.up else None,
        back=(("broker", own, "registers again" if broker.up else "starts"), pool.number(back), back.epoch),
        died=(("broker", own, "dies"), pool.number(rules.died(broker))),
        lapses=("broker", own, "loses its registration"),
        leaving=leaving,
    )
