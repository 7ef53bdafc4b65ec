"""How a broker of the small space takes requests, changes its ISR and copies records: functions of its value.

The rules are ``broker-partition.md`` sections 2 to 7 and 10 for one replica and one record. Time is left out: a
follower that has not fetched all that its leader has may be out of sync at any moment, one that has never is. The space
asks more of kframe than time would allow to happen, not less.
"""

from __future__ import annotations

from typing import Any

from kframe.errors import ErrorCode
from kframe_simulator.search.values import LEADER_UNKNOWN, Broker, Message, Request

#: Answers to a proposal after which the leader waits for another leader epoch (section 6).
_STUCK = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
}
#: Answers after which it goes back to the ISR that it has.
_BACK = {ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA}


def started(broker: Broker) -> Broker:
    """A process that has just started and registered: it remembers nothing, its log is as it was. What its predecessor
    has asked a controller is still on its way."""
    return Broker(True, broker.epoch + 1, has=broker.has, asked=broker.asked, leaving=broker.leaving)


def died(broker: Broker) -> Broker:
    """The process is gone."""
    return Broker(False, broker.epoch, has=broker.has, asked=broker.asked, leaving=broker.leaving)


def take(own: int, broker: Broker, sender: int, message: Message) -> Broker:
    """The broker after a control request of controller ``sender``."""
    kind, controller_epoch, broker_epoch = message[:3]
    if broker_epoch < broker.epoch or controller_epoch < broker.controller_epoch:
        return broker
    broker = broker._replace(controller_epoch=controller_epoch, controller=sender)
    match kind:
        case "U":
            return broker._replace(live=message[3])
        case "L":
            return _led(own, broker, message)
    if 0 <= message[3] < broker.leader_epoch:
        return broker
    return _deleted(broker) if message[4] else broker._replace(stopped=True)


def _deleted(broker: Broker) -> Broker:
    """The replica and its log are gone; the process, and what it knows of others, stay."""
    return broker._replace(
        leader=LEADER_UNKNOWN,
        leader_epoch=-1,
        partition_epoch=0,
        isr=(),
        replicas=(),
        proposed=(),
        stuck=False,
        stopped=False,
        has=False,
        fetched=(),
    )


def _led(own: int, broker: Broker, message: Message) -> Broker:
    _, _, _, leader, leader_epoch, isr, partition_epoch, replicas = message
    if leader_epoch <= broker.leader_epoch or partition_epoch < broker.partition_epoch:
        return broker
    if leader != own and leader not in broker.live:
        return broker  # a leader that is not known to live is not followed, and the epoch not recorded
    return broker._replace(
        leader=leader, leader_epoch=leader_epoch, partition_epoch=partition_epoch, isr=isr if leader == own else (),
        replicas=replicas if leader == own else (), proposed=(), stuck=False, stopped=False, fetched=(),
    )  # fmt: skip


def leads(own: int, broker: Broker) -> bool:
    """Whether it takes itself for the leader."""
    return broker.up and broker.leader == own


def proposals(own: int, broker: Broker) -> list[tuple[int, ...]]:
    """ISRs that it may ask for now: one member more that has caught up, or one less that has not; or once more what it
    has asked for in vain."""
    if not leads(own, broker) or broker.asked or broker.answer or broker.stuck or not broker.controller:
        return []
    if broker.proposed:
        return [broker.proposed]
    joining = [
        (*broker.isr, member_id)
        for member_id in broker.fetched
        if member_id not in broker.isr and member_id in broker.live
    ]
    slow = [member_id for member_id in broker.isr if member_id != own and member_id not in broker.fetched]
    return joining + [tuple(member for member in broker.isr if member != member_id) for member_id in slow]


def propose(broker: Broker, isr: tuple[int, ...]) -> Broker:
    """It asks the controller that it knows for this ISR."""
    asked = Request(broker.controller, broker.epoch, broker.leader_epoch, broker.partition_epoch, isr)
    return broker._replace(proposed=isr, asked=asked)


def at_work(broker: Broker, own: int, what: str) -> Broker:
    """A request is being handled: nobody takes it a second time."""
    if what == "leave":
        return broker._replace(leaving=(-own, broker.leaving[1]))
    assert broker.asked is not None
    return broker._replace(asked=broker.asked._replace(controller=-own))


def answered(broker: Broker, token: int, response: tuple[Any, ...]) -> Broker:
    """A broker to which a controller has replied; a process that has started since has asked for nothing."""
    if token < 10:
        mine = broker.asked is not None and broker.asked.broker_epoch == broker.epoch and broker.up
        return broker._replace(asked=None, answer=response if mine else ())
    done = broker.leaving[1] == broker.epoch and broker.up and response[0] == 0
    return broker._replace(leaving=(0, broker.epoch) if done else (0, 0))


def hear(broker: Broker) -> Broker:
    """It reads the answer to its proposal; one to a proposal that it has dropped meanwhile is nothing to it."""
    error, *notified = broker.answer
    broker = broker._replace(answer=())
    if not broker.proposed or error != ErrorCode.NONE:
        return broker
    code, leader_epoch, partition_epoch, isr = notified
    if code in _BACK:
        return broker._replace(proposed=())
    if code in _STUCK:
        return broker._replace(stuck=True)
    if code != ErrorCode.NONE:
        return broker
    if leader_epoch != broker.leader_epoch or partition_epoch < broker.partition_epoch:
        return broker._replace(stuck=True)
    return broker._replace(proposed=(), isr=isr, partition_epoch=partition_epoch)


def produce(broker: Broker) -> Broker:
    """The leader appends the record: nobody has all that it has any more."""
    return broker._replace(has=True, fetched=())


def fetches(leader: Broker, broker: Broker, own: int, other: int) -> bool:
    """Whether follower ``own`` fetches from ``other``, and that changes anything."""
    following = broker.up and leader.up and not broker.stopped and broker.leader == other == leader.leader
    following = following and own in leader.replicas
    return (
        following and broker.leader_epoch == leader.leader_epoch
        and (own not in leader.fetched or broker.has != leader.has)
    )  # fmt: skip


def fetch(leader: Broker, broker: Broker, own: int) -> tuple[Broker, Broker]:
    """The follower makes its log the leader's, by copying or by truncation, and the leader knows it."""
    fetched = tuple(sorted({*leader.fetched, own}))
    return leader._replace(fetched=fetched), broker._replace(has=leader.has)


def commits(own: int, broker: Broker, min_isr: int) -> bool:
    """Whether its record is below its high watermark: all whom it counts as in sync, those who are to join and those
    who are to leave too, have it, and they are enough."""
    if not leads(own, broker) or not broker.has or len(broker.isr) < min_isr:
        return False
    return {*broker.isr, *broker.proposed} <= {own, *broker.fetched}
