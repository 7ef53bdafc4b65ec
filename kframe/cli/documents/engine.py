"""The documents about kframe itself: plugins, state machines and schemas."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class OptionRecord(Struct):
    """An option of a selector."""

    name: str
    type: Literal["bool", "int", "float", "str"]
    default: bool | int | float | str
    doc: str


class SelectorRecord(Struct):
    """A leader selector that a plugin offers."""

    name: str
    tier: Literal["bulk", "scalar", "native"]
    kinds: list[str]
    options: list[OptionRecord]
    doc: str


class OfferRecord(Struct):
    """Another offer of a plugin."""

    name: str
    doc: str


class PluginRecord(Struct):
    """A plugin and its offers: ``kframe plugins show``."""

    plugin: str
    distribution: str
    source: str
    state: Literal["loaded", "disabled", "broken"]
    error: str | None
    selectors: list[SelectorRecord]
    stores: list[OfferRecord]
    transports: list[OfferRecord]
    clusters: list[OfferRecord]
    admins: list[OfferRecord]
    servers: list[OfferRecord]
    controllers: list[OfferRecord]
    observers: list[OfferRecord]
    checks: list[OfferRecord]
    broker_models: list[OfferRecord]
    snapshot_formats: list[OfferRecord]
    documents: list[OfferRecord]
    cost_terms: list[OfferRecord]
    goals: list[OfferRecord]
    commands: bool


class ListedPlugin(PluginRecord):
    """A plugin, its offers and their names: ``kframe plugins list``."""

    offers: list[str]


class CheckRow(Struct):
    """A check of an offer; ``passed`` is null if it could not run: ``kframe plugins check``."""

    offer: str
    kind: Literal["selector", "cost term", "goal", "store", "transport"]
    tier: Literal["bulk", "scalar", "native"] | None
    check: str
    passed: bool | None
    problem: str | None
    rule: str


class TransitionRow(Struct):
    """A state and the states that may follow it: ``kframe states``."""

    machine: Literal["partition", "replica"]
    state: str
    code: int
    next_states: list[str]


class SchemaRow(Struct):
    """A JSON Schema and the document that it describes: ``kframe schema``."""

    name: str
    document: str
    source: str
