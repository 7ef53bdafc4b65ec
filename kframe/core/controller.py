"""The controller: one event in, effects out.

    events ──▶ step ──▶ effects ──▶ runtime ──▶ results ──▶ step ──▶ …

``step`` neither waits nor does I/O. Each event starts an *operation*: a generator that yields effects and receives
their results. While it runs, ``step`` accepts only results. The controller knows no clock, thread, socket or plugin.
"""

from __future__ import annotations

from collections import Counter

from kframe.core.context import Context, Operation, ask
from kframe.core.event_log import EventLog
from kframe.core.operations import failover, purgatory
from kframe.core.operations.dispatch import decline, operate
from kframe.core.selectors.leader_selection import Selection
from kframe.core.state.metrics import INACTIVE
from kframe.errors import RESIGNING, BrokenInvariant, ControllerFenced, KframeError
from kframe.model.cluster import ClusterState
from kframe.model.config import NEVER_REPLICAS, ControllerConfig
from kframe.model.effects import Ask, Effect, Resigned
from kframe.model.events import ControllerChanged, EffectResult, Event, Failed, Reelect, ResignRequested, SessionExpired
from kframe.model.ids import NO_LEADER
from kframe.model.log_entries import Message
from kframe.ports.store_requests import Claim, Holder, Load, Prepare, ReadController


class ControllerCore:
    """Decides what the cluster must do next (Kafka 3.9 ``KafkaController``).

    Effects are performed in order. A broker receives a state only after storage has accepted it.
    """

    def __init__(self, controller_id: int, config: ControllerConfig, selection: Selection) -> None:
        self.controller_id = controller_id
        self.config = config
        self.selection = selection
        self.active_controller = -1
        """Id of the active controller as far as known; -1 for none."""
        self.counters: Counter[str] = Counter()
        """Meters by Kafka's name, over all terms."""
        self.failures = 0
        """Failed operations. Each of them ended a term."""
        self.log = EventLog()
        """Log entries of the current event."""
        self._context: Context | None = None
        self._operation: Operation[None] | None = None
        self._event: Event | None = None
        """The event of the operation."""
        self._claimed = False
        """Whether this controller holds the role. The cluster may not be loaded yet."""

    @property
    def active(self) -> bool:
        """Whether this is the active controller."""
        return self._context is not None

    @property
    def busy(self) -> bool:
        """Whether an operation waits for a result. ``step`` then accepts only results."""
        return self._operation is not None

    @property
    def controller_epoch(self) -> int:
        """The controller epoch of this term; -1 while inactive."""
        return self._context.controller_epoch if self._context else -1

    @property
    def context(self) -> Context:
        """The state of this term. Raises BrokenInvariant while inactive."""
        if self._context is None:
            raise BrokenInvariant("this controller is not active")
        return self._context

    @property
    def cluster(self) -> ClusterState:
        """The cluster as the active controller knows it. Callers must not change it."""
        return self.context.cluster

    def gauges(self) -> dict[str, int]:
        """Every gauge by Kafka's name, all 0 while inactive. Valid between events."""
        return dict(INACTIVE) if self._context is None else self._context.gauges.values()

    def step(self, event: Event | EffectResult) -> list[Effect]:
        """Process an event, or the result of the last effect; return the effects to perform, in order.

        If the last effect is an Ask, the operation continues with its result. Otherwise it is over. Raises
        BrokenInvariant for an event while a result is due, or the reverse.
        """
        if isinstance(event, EffectResult) != self.busy:
            raise BrokenInvariant(f"{type(event).__name__} received while {'busy' if self.busy else 'idle'}")
        if isinstance(event, EffectResult):
            return self._advance(event)
        self.log.take()  # entries of the previous event
        self._event = event
        self._operation = self._handle(event)
        return self._advance(None)

    def adopt(self, cluster: ClusterState, controller_epoch: int) -> list[Effect]:
        """Become the controller of ``cluster`` under ``controller_epoch`` without a failover (``failover.adopt``).

        The caller has claimed the role. Raises BrokenInvariant if the controller is active.
        """
        if self.active or self.busy:
            raise BrokenInvariant("an active controller cannot adopt a cluster")
        self._context = self._start_term(cluster, controller_epoch)
        self._operation = failover.adopt(self._context)
        return self._advance(None)

    def preempt(self, event: Event) -> list[Effect]:
        """Refuse the request of an event that is dropped because the controller resigns first."""
        return list(decline(event))

    def abandon(self, reason: str) -> list[Effect]:
        """Stop an operation that failed unexpectedly and resign: the columns may be inconsistent."""
        self._operation = None
        self.failures += 1
        return self._resign(reason, release=True)

    def _advance(self, result: EffectResult | None) -> list[Effect]:
        assert self._operation is not None
        effects: list[Effect] = []
        try:
            if isinstance(result, Failed):
                effect = self._operation.throw(result.error)
            else:
                effect = self._operation.send(result)  # type: ignore[arg-type]
            effects.append(effect)
            while not isinstance(effect, Ask):
                effect = next(self._operation)
                effects.append(effect)
        except StopIteration:
            self._operation = None
        except KframeError as error:
            if not isinstance(error, RESIGNING):
                raise
            self._operation = None
            self.failures += 1
            self.log.add(Message.OPERATION_FAILED, event=type(self._event).__name__, error=str(error))
            if self._event is not None:
                effects += decline(self._event)
            effects += self._resign(str(error), release=not isinstance(error, ControllerFenced))
        return effects

    def _handle(self, event: Event) -> Operation[None]:
        """The operation of an event."""
        match event:
            case Reelect():
                yield from self._elect(event)
            case ControllerChanged():
                yield from self._follow()
            case SessionExpired():
                # An election in progress may have won the role in the next session, which blocks other controllers.
                yield from self._resign("our session with storage expired", release=True)
            case ResignRequested():
                yield from self._resign("asked to resign", release=True)
            case _ if self._context is None:
                yield from decline(event)
            case _:
                yield from operate(self._context, event)

    def _elect(self, event: Reelect) -> Operation[None]:
        """The role may be free. Resign if another controller holds it, else claim it and load the cluster."""
        holder = yield from self._follow()
        if holder.ours or (holder.controller_id != NO_LEADER and not self._may_depose(holder, event)):
            return
        controller_epoch = yield from ask(Claim(self.controller_id, event.takeover, event.brokers_only))
        if controller_epoch is None:
            yield from self._follow(Message.ELECTED_INSTEAD)
            return
        self._claimed = True
        self.log.add(Message.ELECTED, broker=self.controller_id, epoch=controller_epoch)
        yield from ask(Prepare())
        cluster = yield from ask(Load())
        self._context = self._start_term(cluster, controller_epoch)
        yield from failover.take_over(self._context)

    def _may_depose(self, holder: Holder, event: Reelect) -> bool:
        """Whether ``event`` allows this controller to take the role from ``holder``."""
        return event.takeover and not (event.brokers_only and holder.controller_id in self.config[NEVER_REPLICAS])

    def _start_term(self, cluster: ClusterState, controller_epoch: int) -> Context:
        self._claimed = True
        self.active_controller = self.controller_id
        return Context(
            cluster, self.config, self.selection, self.controller_id, controller_epoch, self.counters, self.log
        )

    def _follow(self, message: Message = Message.OTHER_ELECTED) -> Operation[Holder]:
        """Read the active controller. Resign if it is not this one any more (Kafka 3.9 ``maybeResign``).

        ``message`` reports a change to another controller.
        """
        holder = yield from ask(ReadController())
        if self.active and not holder.ours:
            yield from self._resign("our session does not hold the role any more", release=False)
        if holder.controller_id not in (NO_LEADER, self.active_controller) and not holder.ours:
            self.log.add(message, broker=self.controller_id, other=holder.controller_id)
        self.active_controller = holder.controller_id
        return holder

    def _resign(self, reason: str, release: bool) -> list[Effect]:
        """End the term: refuse delayed replies and discard the context."""
        if not (self.active or self._claimed):
            return []
        self.log.add(Message.RESIGNED, reason=reason)
        refusals = purgatory.refuse_all(self._context) if self._context is not None else []
        self._context, self._claimed = None, False
        self.active_controller = NO_LEADER
        return [*refusals, Resigned(reason, release)]
