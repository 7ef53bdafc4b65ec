"""Elections of a standby where instances of kframe take precedence over brokers.

The store of a standby claims the role when it is notified that the role is free (``ports.Contending``). If a broker was
faster, the standby takes the role from it. It never takes the role from another instance of kframe.
"""

from __future__ import annotations

import logging
from typing import Final

from kframe.core.controller import ControllerCore
from kframe.errors import StoreError
from kframe.model.config import NEVER_REPLICAS
from kframe.model.events import ControllerChanged, Event, Reelect
from kframe.model.ids import NO_LEADER
from kframe.ports.clock import Clock
from kframe.ports.store import Contending, Notify, Store

_log = logging.getLogger("kframe.controller")

#: The minimum time between two attempts to take the role from a broker, so that an instance that cannot keep the role
#: does not take it continuously.
TAKEOVER_INTERVAL_MS: Final = 1000.0
_TIMER: Final = "take-role-from-broker"


class InstancesFirst:
    """Contends for the role after each event that reveals the active controller."""

    def __init__(self, controller: ControllerCore, store: Store, clock: Clock, notify: Notify) -> None:
        """``notify`` queues an event for this controller."""
        self._controller = controller
        self._store = store
        self._clock = clock
        self._notify = notify
        self._next_ms = float("-inf")

    def handled(self, event: Event) -> None:
        """Contend after an event. An attempt to take the role is not followed by another attempt."""
        controller = self._controller
        if not isinstance(event, Reelect | ControllerChanged) or (isinstance(event, Reelect) and event.brokers_only):
            return
        if not controller.active and controller.active_controller == NO_LEADER:
            return
        self._contend()
        if controller.active:
            return
        if controller.active_controller in controller.config[NEVER_REPLICAS] | {controller.controller_id}:
            return
        now_ms = self._clock.now_ms()
        delay_ms = max(self._next_ms - now_ms, 0.0)
        self._next_ms = now_ms + delay_ms + TAKEOVER_INTERVAL_MS
        self._clock.schedule(_TIMER, delay_ms, self._take)

    def _contend(self) -> None:
        if not isinstance(self._store, Contending):
            return
        try:
            self._store.contend(self._controller.controller_id)
        except StoreError as error:  # the next election is an ordinary claim
            _log.info("the next claim cannot be prepared: %s", error)

    def _take(self) -> None:
        _log.info("broker %d is controller; taking the role", self._controller.active_controller)
        self._notify(Reelect(takeover=True, brokers_only=True))
