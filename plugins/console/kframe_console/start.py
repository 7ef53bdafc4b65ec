"""Starts a console: opens its source, and serves its pages until it is stopped."""

from __future__ import annotations

import webbrowser
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click

from kframe.plugin import InputError
from kframe.plugin.commands import (
    PluginSettings,
    SnapshotReading,
    awaited,
    check_racks,
    is_url,
    opened_cluster,
    progress,
    read_racks,
)
from kframe.plugin.fleet import is_fleet
from kframe.plugin.live import ClusterHistory, GroupedCluster
from kframe.plugin.snapshot import open_history
from kframe_console.allocator import exempt_present_objects, return_large_arrays
from kframe_console.application import application
from kframe_console.launch import (
    LaunchOptions,
    checked_options,
    directories_of,
    executions_of,
    login_of,
    settings_of,
    url_of,
)
from kframe_console.pages import live
from kframe_console.pages.page import ConsolePage
from kframe_console.plans.file_sizes import FileSizes
from kframe_console.plans.session import Sizes, no_sizes
from kframe_console.routes import FLEET_PAGES, PAGES
from kframe_console.security.audit import AuditLog
from kframe_console.serving import listening_socket, serve
from kframe_console.sources.controllers import Controllers, ServedControllers
from kframe_console.sources.demo.source import demo_source
from kframe_console.sources.fleet import FleetSource
from kframe_console.sources.live import LiveSource, reader_of
from kframe_console.sources.logged import LoggedSource
from kframe_console.sources.reading import ClusterSource
from kframe_console.sources.saved import SavedSource, no_cluster
from kframe_console.sources.state_changes import StateChangeLog


class _Shown(NamedTuple):
    """What a console shows."""

    source: ClusterSource
    pages: tuple[ConsolePage, ...]
    controllers: Controllers | None


def start(source: Any, reading: SnapshotReading, options: LaunchOptions, plugins: PluginSettings) -> None:
    """Serve a console until SIGINT or SIGTERM. ``source`` is what the user named; None: a demo, or controllers alone.

    Raises UsageError, ConfigError, InputError, and for a live cluster StoreError.
    """
    address = checked_options(options)
    login, oidc_login = login_of(options)
    return_large_arrays()
    with closing(AuditLog(options.audit_log)) as audit:
        shown = _shown(source, reading, options, plugins)
        _check_cluster_options(shown.source, options, has_source=source is not None)
        app = application(
            shown.source,
            settings_of(options, address),
            login,
            oidc_login,
            audit,
            shown.pages,
            _sizes(shown.source, options.weights, has_source=source is not None),
            executions_of(options, source, plugins),
            shown.controllers,
            StateChangeLog(options.state_change_log) if options.state_change_log else None,
        )
        exempt_present_objects()
        listener = listening_socket(address.host, address.port)
        url = url_of(options, address.host, listener.getsockname()[1])
        click.echo(f"kframe console of {shown.source.name}: {url} (Ctrl-C ends it)")
        if options.browser:
            webbrowser.open(url)  # The socket listens already, so the browser waits for the first page.
        serve(app, listener, options.tls)


def _check_cluster_options(shown: ClusterSource, options: LaunchOptions, *, has_source: bool) -> None:
    """Raises UsageError for a file that belongs to one cluster if another source is shown."""
    is_fleet_shown = isinstance(shown, FleetSource)
    if options.weights is not None and is_fleet_shown:
        raise click.UsageError("found --weights, which has the sizes of one cluster, expected none for a fleet")
    if options.state_change_log is not None and (is_fleet_shown or not has_source):
        raise click.UsageError("found --state-change-log, which is of one cluster, expected SOURCE of one cluster")


def _sizes(shown: ClusterSource, weights: Any, *, has_source: bool) -> Sizes:
    """The sizes in a file, or those that brokers list. Refuses an unusable file now, not by the first plan: raises
    InputError."""
    if weights is None:
        return shown.sizes if isinstance(shown, LiveSource) else no_sizes
    sizes = FileSizes(weights)
    if has_source:
        sizes(shown.reading("").snapshot)
    return sizes


def _shown(source: Any, reading: SnapshotReading, options: LaunchOptions, plugins: PluginSettings) -> _Shown:
    if options.demo is not None:
        demo = demo_source(options.demo, options.partitions, options.brokers)
        return _Shown(demo, PAGES, demo)
    controllers = ServedControllers(options.metrics) if options.metrics else None
    if source is None:
        return _Shown(no_cluster(", ".join(options.metrics)), (replace(live.live_page, path="/"),), controllers)
    opened = _opened(source, reading, options, plugins)
    return _Shown(opened, FLEET_PAGES if isinstance(opened, FleetSource) else PAGES, controllers)


def _opened(source: Any, reading: SnapshotReading, options: LaunchOptions, plugins: PluginSettings) -> ClusterSource:
    if is_url(source):
        cluster, located = opened_cluster(source, options.config, options.command_config, plugins)
        directories = directories_of(options, source, plugins)
        with progress("reading", awaited=awaited(source)), located:
            groups = cluster if isinstance(cluster, GroupedCluster) else None
            return LiveSource(source, reader_of(cluster), reading.complete, options.refresh, groups, directories)
    if options.config or options.command_config:
        raise click.UsageError("--config and --command-config are for the URL of a live cluster")

    if isinstance(source, Path) and is_fleet(source):
        racks = read_racks(reading.rack_map)
        fleet = FleetSource(source, replace(reading, rack_map=None).complete, racks)
        check_racks(racks, set(fleet.clusters), str(source))
        return fleet
    if isinstance(source, Path) and source.is_file() and source.suffix == ".parquet":
        raise InputError(str(source), "a Parquet file", "a fleet: the folder that kframe spark ingest wrote")

    def history() -> ClusterHistory | None:
        return open_history(source, reading.source_format)

    opened = history()
    if opened is None:
        return SavedSource.of(reading.read(source), str(source))
    folder = source if isinstance(source, Path) and source.is_dir() else None
    return LoggedSource(str(source), opened, reading.complete, folder, history, options.refresh)
