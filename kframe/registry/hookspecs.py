"""The hooks. A plugin is a module, or any object, with functions of these names that are marked ``hookimpl``.

It is an entry point in group ``kframe`` of its distribution, a file in ``--plugins-dir``, or an argument of
``build_registry``. Each hook is called once, while a registry is built. Hooks only offer: factories run when a name or
URL is configured.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import pluggy

from kframe.registry.specs import (
    AdminSpec,
    BrokerModelSpec,
    CheckSpec,
    ClusterSpec,
    ControllerSpec,
    CostTermSpec,
    DocumentSpec,
    GoalSpec,
    ObserverSpec,
    SelectorSpec,
    ServerSpec,
    SnapshotFormatSpec,
    StoreSpec,
    TransportSpec,
)

if TYPE_CHECKING:
    import click

#: The name of the pluggy project, and of the entry-point group.
PROJECT: Final = "kframe"

hookspec: Final = pluggy.HookspecMarker(PROJECT)
hookimpl: Final = pluggy.HookimplMarker(PROJECT)


class KframeHooks:
    """The hooks that a plugin may implement; all are optional."""

    @hookspec
    def kframe_leader_selectors(self) -> Iterable[SelectorSpec]:  # type: ignore[empty-body]
        """Offer leader selectors.

        A selector has a unique name (lower case, dashes) and a Tier, which determines what its factory returns. The
        controller validates each choice, as LeaderSelector documents. Two selectors of the same name stop the start-up
        with an error that names both distributions. A complete plugin::

            from kframe.plugin import ElectionKind, PartitionElection, SelectorSpec, Tier, hookimpl


            def lowest(election: PartitionElection) -> int | None:
                return min((broker for broker in election.eligible if broker in election.isr), default=None)


            @hookimpl
            def kframe_leader_selectors():
                return [
                    SelectorSpec(
                        name="lowest-id",
                        tier=Tier.SCALAR,
                        factory=lambda: lowest,
                        kinds=(ElectionKind.OFFLINE,),
                        doc="The in-sync replica with the lowest broker id.",
                    )
                ]
        """

    @hookspec
    def kframe_cost_terms(self) -> Iterable[CostTermSpec]:  # type: ignore[empty-body]
        """Offer cost terms of plans, for ``kframe plan generate --cost NAME``.

        A cost term is the cost of a replica of a partition on a broker, in addition to copying it. ``FORBIDDEN``
        excludes a placement. Replicas that stay cost nothing. Its Tier determines what its factory returns.
        A complete plugin::

            from kframe.plugin import FORBIDDEN, CostTermSpec, Tier, hookimpl


            def outside_audit_rack(placement):
                if not placement.topic.startswith("audit"):
                    return {}
                return {broker: FORBIDDEN for broker, rack in placement.racks.items() if rack != "vault"}


            @hookimpl
            def kframe_cost_terms():
                doc = "Keeps topics that begin with audit in the rack vault."
                return [CostTermSpec(name="audit-rack", tier=Tier.SCALAR, factory=lambda: outside_audit_rack, doc=doc)]
        """

    @hookspec
    def kframe_goals(self) -> Iterable[GoalSpec]:  # type: ignore[empty-body]
        """Offer goals of plans, for ``kframe plan generate --goal NAME``.

        A goal gives a replica of each partition a weight, and each broker limits of the weight that it may have.
        Without limits of its own, each broker is to have its share. Its Tier determines what its factory returns.
        A complete plugin::

            from kframe.plugin import GoalSpec, Tier, hookimpl


            def followers(placement):
                return len(placement.replicas) - 1


            @hookimpl
            def kframe_goals():
                doc = "Balances replication traffic, if all partitions are written equally."
                return [GoalSpec(name="followers", tier=Tier.SCALAR, factory=lambda: followers, doc=doc)]
        """

    @hookspec
    def kframe_stores(self) -> Iterable[StoreSpec]:  # type: ignore[empty-body]
        """Offer stores, each for the URLs of one scheme. ``factory(url)`` makes a ``kframe.ports.store.Store``.

        Two stores for the same scheme stop the start-up. A complete plugin::

            from kframe.plugin import StoreSpec, hookimpl


            @hookimpl
            def kframe_stores():
                return [StoreSpec(scheme="etcd", factory="kframe_etcd.store:open_store", doc="etcd 3.5 and later.")]
        """

    @hookspec
    def kframe_transports(self) -> Iterable[TransportSpec]:  # type: ignore[empty-body]
        """Offer transports. Each is for the URLs of one scheme.

        ``factory(url, config)`` makes a ``kframe.ports.transport.Transport``. Two transports for the same scheme stop
        the start-up. A complete plugin::

            from kframe.plugin import TransportSpec, hookimpl


            @hookimpl
            def kframe_transports():
                return [TransportSpec(scheme="pcap", factory="kframe_pcap:Writer", doc="Writes requests to a file.")]
        """

    @hookspec
    def kframe_clusters(self) -> Iterable[ClusterSpec]:  # type: ignore[empty-body]
        """Offer live clusters. Each is for the URLs of one scheme, as ``kframe snapshot capture`` connects to them.

        ``factory(url, config)`` makes a ``kframe.ports.live_cluster.LiveCluster``. Two for the same scheme stop the
        start-up. A complete plugin::

            from kframe.plugin import ClusterSpec, hookimpl


            @hookimpl
            def kframe_clusters():
                return [ClusterSpec(scheme="etcd", factory="kframe_etcd.live:open_cluster", doc="Clusters in etcd.")]
        """

    @hookspec
    def kframe_admins(self) -> Iterable[AdminSpec]:  # type: ignore[empty-body]
        """Offer admin APIs of live clusters. They execute plans. Each is for the URLs of one scheme.

        ``factory(url, config)`` makes a ``kframe.ports.administration.Administration``; ``config`` has values by
        the keys of Kafka's clients. Two for the same scheme stop the start-up. A complete plugin::

            from kframe.plugin import AdminSpec, hookimpl


            @hookimpl
            def kframe_admins():
                return [AdminSpec(scheme="rest", factory="kframe_rest:open_admin", doc="Kafka's REST proxy.")]
        """

    @hookspec
    def kframe_servers(self) -> Iterable[ServerSpec]:  # type: ignore[empty-body]
        """Offer servers. Clients reach a running controller through them. Each is for the URLs of one scheme.

        ``factory(url, config)`` makes a ``kframe.ports.server.Server``. Two for the same scheme stop the start-up.
        A complete plugin::

            from kframe.plugin import ServerSpec, hookimpl


            @hookimpl
            def kframe_servers():
                return [ServerSpec(scheme="rest", factory="kframe_rest:make_server", doc="JSON over HTTP.")]
        """

    @hookspec
    def kframe_controllers(self) -> Iterable[ControllerSpec]:  # type: ignore[empty-body]
        """Offer controllers that lead the quorum of their cluster: ``kframe controller run`` with ``process.roles``.

        ``factory(url, config)`` makes a ``kframe.ports.quorum_controller.QuorumController``. Two for the same scheme
        stop the start-up. A complete plugin::

            from kframe.plugin import ControllerSpec, hookimpl


            @hookimpl
            def kframe_controllers():
                return [ControllerSpec(scheme="raft", factory="kframe_raft:make_node", doc="A quorum of its own.")]
        """

    @hookspec
    def kframe_register_commands(self, cli: click.Group) -> None:
        """Add commands to the command line. A plugin cannot replace a command.

        Called only by the command line, after all plugins have been loaded. A complete plugin::

            import click

            from kframe.plugin import hookimpl


            @hookimpl
            def kframe_register_commands(cli):
                @cli.command()
                def greet():
                    "Say hello."
                    click.echo("hello")
        """

    @hookspec
    def kframe_observers(self) -> Iterable[ObserverSpec]:  # type: ignore[empty-body]
        """Offer observers. They receive each step of a ZooKeeper controller (``stepped``): the event or the result of
        an effect, and the effects that follow; or each committed decision of a KRaft controller (``committed``).

        A complete plugin::

            from kframe.plugin import ObserverSpec, hookimpl


            class Counter:
                def __init__(self):
                    self.steps = 0

                def stepped(self, cause, effects):
                    self.steps += 1

                def committed(self, offset, decision):
                    self.steps += 1


            @hookimpl
            def kframe_observers():
                return [ObserverSpec(name="counter", factory=Counter, doc="Counts steps.")]
        """

    @hookspec
    def kframe_plugin_checks(self) -> Iterable[CheckSpec]:  # type: ignore[empty-body]
        """Offer further checks of selectors, stores and transports for ``kframe plugins check``.

        ``check(offer, url)`` returns a ``kframe.testing.selector_checks.Finding``. A complete plugin::

            from kframe.plugin import CheckSpec, hookimpl
            from kframe.testing.selector_checks import Finding


            def documented(offer, url):
                return Finding("documented", "It says what it is for.", None if offer.doc else "its doc is empty")


            @hookimpl
            def kframe_plugin_checks():
                return [CheckSpec(name="documented", check=documented, doc="Offers say what they are for.")]
        """

    @hookspec
    def kframe_broker_models(self) -> Iterable[BrokerModelSpec]:  # type: ignore[empty-body]
        """Offer broker models, which scenarios with ``brokers_replicate: true`` run on.

        ``factory(runner, settings, source)`` makes a ``kframe.scenario.state.BrokerModels``. A complete plugin::

            from kframe.plugin import BrokerModelSpec, hookimpl


            @hookimpl
            def kframe_broker_models():
                return [BrokerModelSpec(name="tiered", factory="kframe_tiered:Replication", doc="Tiered storage.")]
        """

    @hookspec
    def kframe_snapshot_formats(self) -> Iterable[SnapshotFormatSpec]:  # type: ignore[empty-body]
        """Offer formats of snapshots, which every command that reads a snapshot accepts.

        kframe's own formats are tried first. A complete plugin::

            from kframe.plugin import SnapshotFormatSpec, hookimpl


            def detect(path, start):
                return start.startswith(b"<cluster>")


            @hookimpl
            def kframe_snapshot_formats():
                return [SnapshotFormatSpec(name="xml", detect=detect, read="kframe_xml:read", doc="Clusters in XML.")]
        """

    @hookspec
    def kframe_documents(self) -> Iterable[DocumentSpec]:  # type: ignore[empty-body]
        """Offer the JSON documents of commands, whose JSON Schemas ``kframe schema`` prints.

        A document has the type of its content, a msgspec Struct. A complete plugin::

            from msgspec import Struct

            from kframe.plugin import DocumentSpec, hookimpl


            class Greeting(Struct):
                "A greeting."

                text: str


            @hookimpl
            def kframe_documents():
                return [DocumentSpec(name="greeting/v1", kind=Greeting, doc="A greeting.")]
        """
