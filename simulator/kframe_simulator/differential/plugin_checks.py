"""The simulation checks of ``kframe plugins check``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from kframe.model.elections import LeaderSelector
from kframe.registry.registry import make_selector
from kframe.registry.specs import SelectorSpec, StoreSpec, TransportSpec
from kframe.testing.selector_checks import Finding
from kframe_simulator.differential.storages import StorageDifference
from kframe_simulator.differential.stores import play_bare, play_history
from kframe_simulator.differential.transports import play_batches
from kframe_simulator.invariants import INVARIANTS
from kframe_simulator.simulation.observations import Rested
from kframe_simulator.simulation.run import plan_of
from kframe_simulator.simulation.simulation import Simulation

#: The seeds of simulated clusters for a selector, and of histories for stores and transports.
SELECTOR_SEEDS: Final = range(1, 4)
STORE_SEEDS: Final = range(1, 11)
TRANSPORT_SEEDS: Final = range(1, 11)


def check_offer(offer: SelectorSpec | StoreSpec | TransportSpec, url: str) -> Finding:
    """Test what a plugin offers, at ``url`` for a store or transport. Raises InputError and PluginError if it cannot be
    tested."""
    match offer:
        case SelectorSpec():
            return try_selector(offer, lambda: make_selector(offer, {}))
        case StoreSpec():
            return try_store(offer, url)
        case TransportSpec():
            return try_transport(offer, url)


def try_selector(spec: SelectorSpec, make: Callable[[], LeaderSelector]) -> Finding:
    """Run whole simulated clusters with the selector. Invariants at rest are not checked: a selector may elect no
    leader."""
    always = tuple(invariant for invariant in INVARIANTS if invariant.trigger is not Rested)
    rule = "Clusters that it elects leaders for keep every invariant, whatever befalls them."
    for seed in SELECTOR_SEEDS:
        result = Simulation(*plan_of(seed, spec.name), dict.fromkeys(spec.kinds, make()), always).run()
        broken = [violation for violation in result.violations if violation.number.startswith("I")]
        if broken:
            first = broken[0]
            return Finding("simulated-clusters", rule, f"seed {seed}: {first.number}: {first.problem}")
    return Finding("simulated-clusters", rule, None)


def try_store(spec: StoreSpec, url: str, seeds: Iterable[int] = STORE_SEEDS) -> Finding:
    """Compare a store with the embedded one in seeded histories. If the plugin offers no test context, one history runs
    without brokers. Raises InputError if that storage is not empty, and the plugin's own errors for its URL."""
    if spec.sandbox is None:
        rule = "A history of three controllers gives what it gives in the embedded store."
        return Finding("simulated-histories", rule, _problem([play_bare(lambda: spec.make(url))]))
    rule = "Histories of three controllers, brokers and operators give what they give in the embedded store."
    return Finding("simulated-histories", rule, _problem(play_history(seed, spec.make_sandbox(url)) for seed in seeds))


def try_transport(spec: TransportSpec, url: str, seeds: Iterable[int] = TRANSPORT_SEEDS) -> Finding:
    """Compare a transport with the embedded brokers in seeded histories. Raises PluginError if the plugin offers no
    test context, and the plugin's own errors for its URL."""
    rule = "Brokers that come, go and are silent receive and respond as the embedded brokers do."
    played = (play_batches(seed, lambda cluster: spec.make_sandbox(url, cluster)) for seed in seeds)
    return Finding("simulated-batches", rule, _problem(played))


def _problem(played: Iterable[StorageDifference | None]) -> str | None:
    """The first difference. Later histories are not played."""
    return next((str(entry) for entry in played if entry is not None), None)
