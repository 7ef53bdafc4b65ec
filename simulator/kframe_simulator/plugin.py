"""The plugin hooks of this distribution. They import modules on first use."""

from __future__ import annotations

import click

from kframe.plugin import BrokerModelSpec, CheckSpec, hookimpl


@hookimpl
def kframe_register_commands(cli: click.Group) -> None:
    """Add ``kframe sim``."""
    from kframe_simulator.command import group

    cli.add_command(group)


@hookimpl
def kframe_plugin_checks() -> list[CheckSpec]:
    """Checks of selectors in simulated clusters; differential tests of stores and transports."""
    return [CheckSpec("simulator", "kframe_simulator.differential.plugin_checks:check_offer", "Seeded simulations.")]


@hookimpl
def kframe_broker_models() -> list[BrokerModelSpec]:
    """Brokers of scenarios with ``brokers_replicate: true``."""
    return [BrokerModelSpec("replication", "kframe_simulator.replication.scenario:Replication", "Kafka 3.9's rules.")]
