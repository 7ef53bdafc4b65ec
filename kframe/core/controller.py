"""The controller: one event in, effects out.

    events ──▶ step ──▶ effects ──▶ the world ──▶ answers ──▶ step ──▶ …

``step`` never waits and never acts. Each event starts an *operation*, a generator in the modules beside this one, that
yields effects and is sent their answers; while it is under way only answers may come in. Nothing here knows the time,
a thread, a socket or a plugin.
"""

from __future__ import annotations

from collections import Counter

from kframe.core import failover
from kframe.core.admin import purgatory
from kframe.core.context import Context, Operation, ask
from kframe.core.event_log import EventLog
from kframe.core.operations import decline, operate
from kframe.core.selectors.leader_selection import Selection
from kframe.core.state.metrics import INACTIVE
from kframe.errors import CONSEQUENCE, BrokenInvariant, ControllerFenced, KframeError
from kframe.model.asks import Claim, Holder, Load, Prepare, ReadController
from kframe.model.cluster import ClusterState
from kframe.model.config import NEVER_REPLICAS, ControllerConfig
from kframe.model.effects import Ask, Effect, Resigned
from kframe.model.events import Answer, ControllerChanged, Elect, Event, Failed, ResignRequested, SessionExpired
from kframe.model.ids import NO_LEADER
from kframe.model.log_entries import Message


class Controller:
    """Decides what the cluster must do next (Kafka 3.9 ``KafkaController``).

    Effects are performed in order, and nothing reaches a broker before storage has accepted the state it announces.
    """

    def __init__(self, controller_id: int, config: ControllerConfig, selection: Selection) -> None:
        self.controller_id = controller_id
        self.config = config
        self.selection = selection
        self.active_controller = -1
        """Id of whoever is controller as far as we know; -1 for nobody."""
        self.counters: Counter[str] = Counter()
        """Meters by Kafka's name, across all our times in office."""
        self.failures = 0
        """Operations that failed, each of which has cost us the role."""
        self.log = EventLog()
        """What the event under way has reported for the logs."""
        self._context: Context | None = None
        self._operation: Operation[None] | None = None
        self._event: Event | None = None
        """What the operation handles."""
        self._claimed = False
        """Whether the role is ours, although perhaps nothing is loaded yet."""

    @property
    def active(self) -> bool:
        """Whether we are the controller."""
        return self._context is not None

    @property
    def busy(self) -> bool:
        """Whether an operation waits for an answer; only answers may be handed to ``step`` then."""
        return self._operation is not None

    @property
    def controller_epoch(self) -> int:
        """Our controller epoch; -1 while we are not the controller."""
        return self._context.controller_epoch if self._context else -1

    @property
    def context(self) -> Context:
        """What the active controller works with. Raises BrokenInvariant while we are not the controller."""
        if self._context is None:
            raise BrokenInvariant("this controller is not active")
        return self._context

    @property
    def cluster(self) -> ClusterState:
        """The cluster as the active controller sees it; not to be changed from outside."""
        return self.context.cluster

    def gauges(self) -> dict[str, int]:
        """Every gauge by Kafka's name, all 0 while we are not the controller; to be asked between events."""
        return dict(INACTIVE) if self._context is None else self._context.gauges.values()

    def step(self, event: Event | Answer) -> list[Effect]:
        """Take one event, or the answer to the last effect returned; return what is to be done now, in order.

        The list is empty when the operation is over and no effect is left; if its last effect is an Ask, the
        operation goes on with its answer. Raises BrokenInvariant for an event while an answer is due, or the reverse.
        """
        if isinstance(event, Answer) != self.busy:
            raise BrokenInvariant(f"{type(event).__name__} came while {'busy' if self.busy else 'idle'}")
        if isinstance(event, Answer):
            return self._advance(event)
        self.log.take()  # what nobody took of the event before
        self._event = event
        self._operation = self._handle(event)
        return self._advance(None)

    def adopt(self, cluster: ClusterState, controller_epoch: int) -> list[Effect]:
        """Be the controller of ``cluster`` under ``controller_epoch`` as if we had been all along (``failover.adopt``).

        The role must have been claimed already. Raises BrokenInvariant if we are active.
        """
        if self.active or self.busy:
            raise BrokenInvariant("an active controller cannot adopt a cluster")
        self._context = self._take_office(cluster, controller_epoch)
        self._operation = failover.adopt(self._context)
        return self._advance(None)

    def preempt(self, event: Event) -> list[Effect]:
        """Answer whoever waits for an event that will not be handled, since we stop being controller first."""
        return list(decline(event))

    def abandon(self, reason: str) -> list[Effect]:
        """Stop an operation that failed unexpectedly and give the role up: what we know cannot be trusted any more."""
        self._operation = None
        self.failures += 1
        return self._resign(reason, release=True)

    def _advance(self, answer: Answer | None) -> list[Effect]:
        assert self._operation is not None
        effects: list[Effect] = []
        try:
            if isinstance(answer, Failed):
                effect = self._operation.throw(answer.error)
            else:
                effect = self._operation.send(answer)  # type: ignore[arg-type]
            effects.append(effect)
            while not isinstance(effect, Ask):
                effect = next(self._operation)
                effects.append(effect)
        except StopIteration:
            self._operation = None
        except KframeError as error:
            if not isinstance(error, tuple(CONSEQUENCE)):
                raise
            self._operation = None
            self.failures += 1
            self.log.add(Message.OPERATION_FAILED, event=type(self._event).__name__, error=str(error))
            if self._event is not None:
                effects += decline(self._event)
            effects += self._resign(str(error), release=not isinstance(error, ControllerFenced))
        return effects

    def _handle(self, event: Event) -> Operation[None]:
        """The operation that an event asks for."""
        match event:
            case Elect():
                yield from self._elect(event)
            case ControllerChanged():
                yield from self._follow()
            case SessionExpired():
                # An election under way may have won the role in the session that follows: nobody else could take it.
                yield from self._step_down("our session with storage expired", release=True)
            case ResignRequested():
                yield from self._step_down("asked to resign", release=True)
            case _ if self._context is None:
                yield from decline(event)
            case _:
                yield from operate(self._context, event)

    def _elect(self, event: Elect) -> Operation[None]:
        """The role may be free: step down if we had it, try to take it, and take over the cluster on success."""
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
        self._context = self._take_office(cluster, controller_epoch)
        yield from failover.take_over(self._context)

    def _may_depose(self, holder: Holder, event: Elect) -> bool:
        """Whether ``event`` allows to take the role from this controller, as far as its id says."""
        return event.takeover and not (event.brokers_only and holder.controller_id in self.config[NEVER_REPLICAS])

    def _take_office(self, cluster: ClusterState, controller_epoch: int) -> Context:
        self._claimed = True
        self.active_controller = self.controller_id
        return Context(
            cluster, self.config, self.selection, self.controller_id, controller_epoch, self.counters, self.log
        )

    def _follow(self, message: Message = Message.OTHER_ELECTED) -> Operation[Holder]:
        """Read who is controller; step down if we were and are not any more (Kafka: ``maybeResign``).

        Each change to another controller is reported, by ``message``.
        """
        holder = yield from ask(ReadController())
        if self.active and not holder.ours:
            yield from self._step_down("our session does not hold the role any more", release=False)
        if holder.controller_id not in (NO_LEADER, self.active_controller) and not holder.ours:
            self.log.add(message, broker=self.controller_id, other=holder.controller_id)
        self.active_controller = holder.controller_id
        return holder

    def _step_down(self, reason: str, release: bool) -> Operation[None]:
        yield from self._resign(reason, release)

    def _resign(self, reason: str, release: bool) -> list[Effect]:
        """Forget everything that only the controller may know."""
        if not (self.active or self._claimed):
            return []
        self.log.add(Message.RESIGNED, reason=reason)
        dismissed = purgatory.dismiss(self._context) if self._context is not None else []
        self._context, self._claimed = None, False
        self.active_controller = NO_LEADER
        return [*dismissed, Resigned(reason, release)]
