"""The active controller as handlers of requests see it: they wait for it, and for the records of its decisions."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from kframe.plugin.kraft_controller import broker_events
from kframe_kraft.controller import DecisionLoop, Event, NotController

T = TypeVar("T")


class ActiveController:
    """The loop of the active controller, once there is one.

    Requests that arrive before wait for it: brokers whose controller restarts send what has queued before they look for
    the leader. Its methods run on the event loop of the server.
    """

    def __init__(self) -> None:
        self._loop: DecisionLoop | None = None
        self._is_active = asyncio.Event()

    def activate(self, loop: DecisionLoop) -> None:
        """Let the requests go on."""
        self._loop = loop
        self._is_active.set()

    async def ask(self, event: Event[T]) -> T:
        """Decide an event; returns when its records are committed. Raises RequestRefused and NotController."""
        await self._is_active.wait()
        loop = self._loop
        if loop is None:
            raise NotController("this node is not the controller")
        return await asyncio.wrap_future(loop.submit(event))

    def submit(self, event: Event[None]) -> None:
        """Decide an event after those that were asked before, without waiting for it."""
        if self._loop is not None:
            self._loop.submit(event)

    def heartbeat(self, heartbeat: broker_events.BrokerHeartbeat) -> broker_events.BrokerHeartbeatReply | None:
        """Note a heartbeat when it arrives. Returns the reply if it changes nothing; see ``DecisionLoop``."""
        return None if self._loop is None else self._loop.heartbeat(heartbeat)
