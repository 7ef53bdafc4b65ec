"""Performs effects as calls of the store and the transport, and returns their results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kframe.core.controller import ControllerCore
from kframe.errors import BrokenInvariant, KframeError, StoreError
from kframe.model.effects import (
    Ask,
    CancelTimer,
    CloseChannels,
    Effect,
    Enqueue,
    OpenChannels,
    Reply,
    Resigned,
    Send,
    SetTimer,
)
from kframe.model.events import Done, EffectResult, Failed
from kframe.ports.clock import Clock
from kframe.ports.store import Notify, ReportingBrokers, Store
from kframe.ports.store_requests import OwnsRole, ReleaseRole, StoreRequest
from kframe.ports.transport import Acknowledging, Expecting, Transport


class Performer:
    """Performs the effects of a controller."""

    def __init__(
        self,
        controller: ControllerCore,
        store: Store,
        transport: Transport,
        clock: Clock,
        reply: Callable[[int, Any], None],
        notify: Notify,
    ) -> None:
        self._controller = controller
        self._store = store
        self._transport = transport
        self._clock = clock
        self._timers: set[str] = set()
        self._reply = reply
        self._notify = notify
        self._acknowledges = isinstance(transport, Acknowledging) and transport.acknowledges
        if isinstance(store, ReportingBrokers) and isinstance(transport, Expecting):
            store.report_brokers(transport.expect)

    def perform(self, effects: list[Effect]) -> EffectResult | None:
        """Perform ``effects`` in order; return the result of the last one, if it has one.

        An error of the store or the transport becomes a Failed result, for the core to interpret.
        """
        result = None
        for effect in effects:
            result = self.perform_effect(effect)
        return result

    def perform_effect(self, effect: Effect) -> EffectResult | None:
        """Perform an effect; return its result if it is an Ask."""
        if not isinstance(effect, Ask):
            self._act(effect)
            return None
        try:
            return self._ask(effect)
        except KframeError as error:
            return Failed(error)

    def _act(self, effect: Effect) -> None:
        match effect:
            case Reply(token=token, response=response):
                self._reply(token, response)
            case OpenChannels(brokers=brokers):
                self._transport.connect(self._controller.cluster, brokers)
            case Enqueue(event=event):
                self._notify(event)
            case SetTimer(name=name, delay_ms=delay_ms, event=event):
                self._clock.schedule(name, delay_ms, partial(self._notify, event))
                self._timers.add(name)
            case CancelTimer(name=name):
                self._clock.cancel(name)
                self._timers.discard(name)
            case CloseChannels(brokers=brokers):
                self._transport.disconnect(self._controller.cluster, brokers)
            case Resigned(release=release):
                for name in self._timers:
                    self._clock.cancel(name)
                self._timers.clear()
                self._transport.close()
                self._transport.open(self._notify, self._store.may_act)
                if release:
                    self._store.perform(ReleaseRole())
            case _:
                raise BrokenInvariant(f"no case for effect {type(effect).__name__}")

    def _ask(self, effect: Ask[Any]) -> EffectResult:
        match effect:
            case Send(requests=requests):
                if not self.confirms_role():
                    raise StoreError("the role may be lost: no request is sent")
                self._transport.send(self._controller.cluster, requests)
                return Done(self._acknowledges)
            case StoreRequest():
                return Done(self._store.perform(effect))
            case _:
                raise BrokenInvariant(f"no case for effect {type(effect).__name__}")

    def confirms_role(self) -> bool:
        """Whether this controller still owns the role. Storage is asked only while the session may have expired.

        Without connection to storage this waits, as Kafka does (3.9 ``KafkaZkClient.retryRequestsUntilConnected``).
        No request is sent until then. Raises StoreError if the session has expired.
        """
        return self._store.may_act() or (self._store.perform(OwnsRole()) and self._store.may_act())
