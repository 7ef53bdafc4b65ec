"""A broker process: its model, its registration and its faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from kframe.errors import ErrorCode
from kframe.model.brokers import Endpoint, Registration
from kframe.model.ids import NO_BROKER_EPOCH
from kframe_simulator.broker.broker import Broker, BrokerState
from kframe_simulator.broker.messages import ControlResponse, LeaderAndIsr, Request, Response, StopReplica
from kframe_simulator.replication.control_requests import ControlRequest
from kframe_simulator.simulation.broker_messages import BrokerHost, about
from kframe_simulator.simulation.broker_requests import send
from kframe_simulator.simulation.controller_requests import ControllerRequests
from kframe_simulator.simulation.observations import ResponseSent


class BrokerProcess:
    """The process, session and disk of one simulated ``Broker``, across its restarts."""

    def __init__(self, simulation: BrokerHost, model: Broker, registration: Registration) -> None:
        self.model = model
        self.broker_id = model.broker_id
        self.registration = registration
        self.running = self.paused = False
        self.slow_ms = 0.0
        """The extra time that it takes for a control request."""
        self.half_applies = 0
        """How many of the next LeaderAndIsr requests it applies and then fails with an error."""
        self.fails_stops = 0
        """How many of the next deleting StopReplica requests fail."""
        self.failed_stops = False
        """Whether a deletion has failed. It continues after the broker has registered again."""
        self.bounces_at_deletion: float | None = None
        """The broker registers again before its next deleting StopReplica. The response waits for up to this time."""
        self.requests = ControllerRequests(simulation, self)
        self.dead_dirs: set[str] = set()
        self.incarnation = 0
        self.restarted_after_crash = False
        """Whether the previous process crashed."""
        self.stopped_in_order = True
        self._simulation = simulation
        self._session = 0
        self.registered = False
        """Whether storage has its registration."""
        self._waits = self._silent = False
        self.deferred: list[Callable[[], None]] = []
        self._wakes_at = float("inf")

    # -- Start and stop.

    def start(self) -> None:
        """Start a process. If an earlier registration of the id exists, first wait for its deletion."""
        if self.running or self._waits:
            return
        if self.registered:
            self._waits = True
            self._simulation.scheduler.after(500.0, self._start_again)
            return
        self.running, self.paused = True, False
        self.incarnation += 1
        self.failed_stops = False
        self.restarted_after_crash, self.stopped_in_order = not self.stopped_in_order, False
        self._record_silence(False)
        self._register()
        self.model.start(self.registration.broker_epoch, self._now())
        self.flush()

    def _start_again(self) -> None:
        self._waits = False
        self.start()

    def crash(self) -> None:
        """End as by kill -9: the registration stays until the session times out."""
        if not self.running:
            return
        self._end()
        self._record_silence(True)
        self._time_out_later()

    def kill(self) -> None:
        """Crash, and end the session at once."""
        self.crash()
        self.time_out()

    def _end(self) -> None:
        """End the process. Connections of pending requests break."""
        if self.registered:
            self._simulation.watch.observed.crashed(self.broker_id)
        self.running = False
        self.model.crash(self._now())
        self._simulation.watch.memory.pop(self.broker_id, None)
        deferred_calls, self.deferred = self.deferred, []
        for call in deferred_calls:
            call()

    def bounce(self) -> None:
        """Restart fast. Controllers read a registration before and after, and none in between."""
        if not self.running or self.paused or not self.registered:
            return
        self._end()
        self.running = True
        self.incarnation += 1
        self.restarted_after_crash = True
        self._simulation.record_step("broker_bounce", [self.broker_id])
        (epoch,) = self._simulation.ensemble.bounce_brokers([self.broker_id])
        self._session += 1
        self.registration = replace(self.registration, broker_epoch=epoch)
        self.model.start(epoch, self._now())
        self.flush()

    def shut_down(self) -> None:
        """Begin a controlled shutdown."""
        if self.running and not self.paused and self.model.state is BrokerState.RUNNING:
            self.model.shut_down(self._now())
            self.flush()

    def pause(self) -> None:
        """Pause the process as SIGSTOP does."""
        if self.running and not self.paused:
            self.paused = True
            self._record_silence(True)
            self._time_out_later()

    def resume(self) -> None:
        """Continue, and handle everything that has arrived. Register again if the session has timed out."""
        if not self.running or not self.paused:
            return
        self.paused = False
        self._record_silence(False)
        self._session += 1
        if not self.registered:
            self._register()
            self.model.reregister(self.registration.broker_epoch)
        deferred_calls, self.deferred = self.deferred, []
        for call in deferred_calls:
            call()
        self._wake()

    def expire(self) -> None:
        """The ensemble expires its session; the broker registers again."""
        if self.running and not self.paused and self.registered:
            self._simulation.watch.observed.crashed(self.broker_id)
            self.unregister()
            self._simulation.scheduler.after(100.0, self._register_again)

    def readdress(self, endpoints: tuple[Endpoint, ...]) -> bool:
        """Change the listeners of the current registration. Returns whether the broker is registered."""
        if not self.running or self.paused or not self.registered:
            return False
        self.registration = replace(self.registration, endpoints=endpoints)
        self._simulation.ensemble.modify_broker(self.registration)
        return True

    def fail_log_dir(self, log_dir: str) -> bool:
        """Fail one of its log directories. Returns whether the directory was working."""
        if not self.running or self.paused or log_dir in self.dead_dirs:
            return False
        self.dead_dirs.add(log_dir)
        lost = [key for key, log in self.model.disks.logs.items() if log.log_dir == log_dir]
        self.model.fail_log_dir(log_dir, self._now())
        self._simulation.log_dir_lost(self, lost)
        self.flush()
        return True

    def swap_disks(self) -> None:
        """Crash, and restart at once with empty disks and another registration."""
        self.crash()
        self._simulation.watch.record_history.logs_lost(self.broker_id, tuple(self.model.disks.logs))
        for log_dir in sorted(self.model.disks.alive):
            self.model.disks.fail(log_dir)
            self.model.replace_log_dir(log_dir)
        self.dead_dirs.clear()
        self.time_out()
        self.start()

    def end_faults(self) -> None:
        """End all faults. If the broker has failed to delete replicas, an operator restarts it."""
        self.slow_ms, self.half_applies, self.fails_stops, self.bounces_at_deletion = 0.0, 0, 0, None
        self.requests.end_faults()
        self.resume()
        if self.failed_stops:
            self.crash()
        self.replace_disks()

    def replace_disks(self) -> None:
        """Stop the broker and replace failed log directories by empty ones."""
        if self.dead_dirs:
            self.crash()
            for log_dir in sorted(self.dead_dirs):
                self.model.replace_log_dir(log_dir)
            self.dead_dirs.clear()

    def _register_again(self) -> None:
        if self.running and not self.paused and not self.registered:
            self._register()
            self.model.reregister(self.registration.broker_epoch)
            self.flush()

    def _record_silence(self, silent: bool) -> None:
        """Record whether the broker responds to no request."""
        if silent is not self._silent:
            self._silent = silent
            self._simulation.record_step("answer", {"broker": self.broker_id, "error": "SILENT" if silent else "NONE"})

    def _register(self) -> None:
        self._simulation.record_step("broker_startup", [{"id": self.broker_id}])
        (epoch,) = self._simulation.ensemble.register_brokers(
            [replace(self.registration, broker_epoch=NO_BROKER_EPOCH)]
        )
        self.registration = replace(self.registration, broker_epoch=epoch)
        self.registered = True
        self._session += 1

    def unregister(self) -> None:
        """End the session: the registration is deleted."""
        if self.registered:
            self.registered = False
            self._simulation.record_step("broker_failure", [self.broker_id])
            self._simulation.ensemble.unregister_brokers([self.broker_id])

    def close_session(self, in_order: bool) -> None:
        """End the process and its session. ``in_order``: after a granted controlled shutdown."""
        self.stopped_in_order, self.running = in_order, False
        self._simulation.watch.memory.pop(self.broker_id, None)
        observed = self._simulation.watch.observed
        observed.stopped_in_order(self.broker_id) if in_order else observed.crashed(self.broker_id)
        self.unregister()

    def _time_out_later(self) -> None:
        session = self._session

        def time_out() -> None:
            if self._session == session:
                if self.paused and self.registered:
                    self._simulation.watch.observed.crashed(self.broker_id)
                self.unregister()

        self._simulation.scheduler.after(self._simulation.session_timeout_ms, time_out)

    def time_out(self) -> None:
        """Expire the session after the session timeout."""
        if not self.running:
            self.unregister()

    # -- Received requests.

    def receive(
        self, control_request: ControlRequest, respond: Callable[[ControlResponse], None], refuse: Callable[[], None]
    ) -> None:
        """Handle a control request. A stopped broker does not respond."""
        if not self.running:
            refuse()
            return
        incarnation = self.incarnation

        def act() -> None:
            if self.running and self.incarnation == incarnation:
                self._handle_control_request(control_request, respond)

        if self.paused:
            self.deferred.append(act)
        elif self.slow_ms:
            self._simulation.scheduler.after(self.slow_ms, partial(self._when_running, act))
        else:
            act()

    def ask(self, request: Request, respond: Callable[[Response | None], None]) -> None:
        """Handle a request of a client or another broker. The response is None if the broker is stopped."""
        if not self.running:
            respond(None)
        elif self.paused:
            self.deferred.append(partial(self.ask, request, respond))
        else:
            response = self.model.handle(request, self._now())
            if response is not None:
                respond(response)
            self._simulation.logs_touched(self, about(request))
            self.flush()

    def _when_running(self, act: Callable[[], None]) -> None:
        self.deferred.append(act) if self.paused else act()

    def _handle_control_request(
        self, control_request: ControlRequest, respond: Callable[[ControlResponse], None]
    ) -> None:
        if self.bounces_at_deletion is not None and _deletes(control_request.message):
            self._bounce_before_handling(control_request)
            return
        if self._fails(control_request.message):
            respond(
                ControlResponse(
                    errors=dict.fromkeys(control_request.message.partitions, ErrorCode.UNKNOWN_SERVER_ERROR)
                )
            )
            return
        response = self.model.handle(control_request.message, self._now())
        assert isinstance(response, ControlResponse)
        self._simulation.logs_touched(self, control_request.message.partitions)
        self._simulation.watch.response_sent(ResponseSent(self, control_request, response))
        self.flush()
        if self.half_applies and isinstance(control_request.message, LeaderAndIsr):
            self.half_applies -= 1
            response = ControlResponse(errors=dict.fromkeys(response.errors, ErrorCode.UNKNOWN_SERVER_ERROR))
        respond(response)

    def _bounce_before_handling(self, control_request: ControlRequest) -> None:
        """Register again, then refuse a request for the earlier registration. Its sender reads the response before it
        closes the channel. It handles it after it has opened the next channel."""
        until, self.bounces_at_deletion = self._now() + (self.bounces_at_deletion or 0.0), None
        self.bounce()
        response = self.model.handle(control_request.message, self._now())
        assert isinstance(response, ControlResponse)
        self._simulation.watch.response_sent(ResponseSent(self, control_request, response))
        sender = self._simulation.controller(control_request.message.controller_id)
        event = control_request.event(response)
        if sender is None or event is None:
            return
        transport = sender.transport

        def handle() -> None:
            channel = transport.channels.get(self.broker_id)
            if channel is not None and channel.broker_epoch != control_request.broker_epoch:
                transport.deliver_late(event)
            elif self._now() < until:
                self._simulation.scheduler.after(1.0, handle)

        handle()

    def _fails(self, message: object) -> bool:
        """Whether a StopReplica fails without any effect."""
        if not self.fails_stops or not isinstance(message, StopReplica):
            return False
        fails = _deletes(message)
        self.fails_stops -= fails
        self.failed_stops |= fails
        return fails

    # -- Sent messages.

    def _now(self) -> float:
        return self._simulation.scheduler.now_ms

    def flush(self) -> None:
        """Run the broker's due work and send its messages."""
        for out in self.model.tick(self._now()):
            send(self._simulation, self, out)
        if self.model.wakes_at < self._wakes_at:
            self._wakes_at = self.model.wakes_at
            self._simulation.scheduler.at(self._wakes_at, partial(self._wake_at, self._wakes_at))

    def _wake_at(self, due_ms: float) -> None:
        if self._wakes_at == due_ms:
            self._wakes_at = float("inf")
            self._wake()

    def _wake(self) -> None:
        if self.running and not self.paused:
            self.flush()


def _deletes(message: object) -> bool:
    """Whether a request deletes replicas."""
    return isinstance(message, StopReplica) and any(stop.delete for stop in message.partitions.values())
