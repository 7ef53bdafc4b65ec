"""The plugin hooks of this distribution. They import modules on first use."""

from __future__ import annotations

import click

from kframe.plugin import BrokerModelSpec, CheckSpec, DocumentSpec, hookimpl


@hookimpl
def kframe_register_commands(cli: click.Group) -> None:
    """Add ``kframe sim``."""
    from kframe_simulator.command import group

    cli.add_command(group)


@hookimpl
def kframe_plugin_checks() -> list[CheckSpec]:
    """Checks of selectors in simulated clusters. Differential tests of stores and transports."""
    return [CheckSpec("simulator", "kframe_simulator.differential.plugin_checks:check_offer", "Seeded simulations.")]


@hookimpl
def kframe_broker_models() -> list[BrokerModelSpec]:
    """Brokers of scenarios with ``brokers_replicate: true``."""
    return [BrokerModelSpec("replication", "kframe_simulator.replication.scenario:Replication", "Kafka 3.9's rules.")]


@hookimpl
def kframe_documents() -> list[DocumentSpec]:
    """The documents of ``kframe sim``."""
    types = "kframe_simulator.documents"
    return [
        DocumentSpec("kframe.sim/v1", f"{types}:SimTotals", "The sum of all seeds: `kframe sim run`."),
        DocumentSpec("kframe.sim-run/v1", f"{types}:SimRunDocument", "A run: `kframe sim replay` and `shrink`."),
        DocumentSpec("kframe.sim-seeds/v1", f"{types}:SimSeedRow", "A seed: `kframe sim run --each`.", rows=True),
        DocumentSpec("kframe.sim-total/v1", f"{types}:SimPartsTotal", "The sum of parts: `kframe sim total`."),
    ]
