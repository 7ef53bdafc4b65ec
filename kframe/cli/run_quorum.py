"""``kframe controller run`` of a node with ``process.roles``: lead a quorum until a signal, or until it cannot lead."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from kframe.cli.logs import start_logs
from kframe.cli.monitor import LISTENER as METRICS
from kframe.cli.monitor import STATUS, Monitor, Page, json_page
from kframe.cli.output import plain
from kframe.cli.selectors import ChosenSelectors, configured_selectors, selectors_text
from kframe.cli.stop_signal import StopSignal
from kframe.errors import StoreError
from kframe.ports.quorum_controller import QuorumController
from kframe.registry.registry import Registry
from kframe.runtime.health import HealthStatus
from kframe.settings.settings import Settings

_log = logging.getLogger("kframe.controller")

ROLES: Final = "process.roles"
_SCHEME: Final = "kraft:"
#: Seconds between two looks at whether the controller still leads.
_CHECK_S: Final = 0.5
#: Options of the command that this mode has too.
_OPTIONS: Final = {
    "config",
    "log_dir",
    "log_level",
    "metrics_listen",
    "plugins_dir",
    "no_plugin",
    "selectors",
    "trace_plugins",
}


def run(
    settings: Settings,
    registry: Registry,
    selectors: Sequence[str],
    metrics_listen: str | None,
    log_dir: Path | None,
    log_level: str,
) -> None:
    """Lead until SIGTERM or SIGINT.

    Raises UsageError for an option that is for ZooKeeper mode, ConfigError, and StoreError when the controller gives
    its role up.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and parameter.name not in _OPTIONS:
            raise click.UsageError(f"{parameter.opts[0]} is for ZooKeeper mode: the configuration has {ROLES}")
    chosen = configured_selectors(settings, registry, selectors)
    with settings.located():
        controller = registry.open_controller(_SCHEME, settings.values)
    start_logs(controller.node_id, log_dir, log_level)
    monitor = None if metrics_listen is None else Monitor(metrics_listen)
    with StopSignal() as stop_signal:
        try:
            with settings.located():
                controller.start(chosen.by_kind)
            if monitor is not None:
                _serve_pages(monitor, controller, chosen)
            _log.info("%s; leader selectors: %s", controller.summary(), selectors_text(chosen.records))
            while not stop_signal.wait(_CHECK_S):
                if controller.failure is not None:
                    raise StoreError(f"node {controller.node_id} no longer leads: {controller.failure}")
            _log.info("received a signal to stop")
        finally:
            if monitor is not None:
                monitor.stop()
            controller.stop()
        _log.info("stopped")


def _serve_pages(monitor: Monitor, controller: QuorumController, selectors: ChosenSelectors) -> None:
    """Serve metrics, health and status. Raises ConfigError."""

    def alive() -> HealthStatus:
        failure = controller.failure
        return HealthStatus(() if failure is None else (failure,), dict(controller.details()))

    def ready() -> HealthStatus:
        return HealthStatus(tuple(controller.problems()), dict(controller.details()))

    def status() -> Page:
        return json_page({**controller.details(), "selectors": list(map(plain, selectors.records))})

    monitor.serve(controller.metrics, alive, ready, {STATUS: status})
    _log.info("metrics on %s", monitor.addresses[METRICS])
