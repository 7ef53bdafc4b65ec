"""The leader selectors of a controller, from its options and its properties file, and their description."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Struct

from kframe.cli.output import BadInput
from kframe.errors import ConfigError, PluginError
from kframe.model.config import nearest
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.registry.registry import Registry
from kframe.settings.settings import SELECTOR_PREFIX, SELECTORS, Settings

_log = logging.getLogger("kframe.config")

#: What decides elections without a selector.
KAFKA_RULE: Final = "Kafka's rule for all elections"


class ChosenSelectorRecord(Struct):
    """A leader selector in force, the kinds of election that it decides, and its options."""

    name: str
    elections: list[str]
    options: dict[str, bool | int | float | str]


@dataclass(frozen=True, slots=True)
class ChosenSelectors:
    """The selectors of a controller by the kind of election, and a description of each in force."""

    by_kind: Mapping[ElectionKind, LeaderSelector]
    records: tuple[ChosenSelectorRecord, ...] = ()


def selectors_text(records: Sequence[ChosenSelectorRecord]) -> str:
    """Selectors such as ``rack-spread (racks=3) for OFFLINE, REASSIGN``."""
    texts = []
    for record in records:
        options = ", ".join(f"{name}={value}" for name, value in record.options.items())
        texts.append(f"{record.name}{f' ({options})' if options else ''} for {', '.join(record.elections)}")
    return "; ".join(texts) or KAFKA_RULE


def configured_selectors(settings: Settings, registry: Registry, names: Sequence[str]) -> ChosenSelectors:
    """The selectors called ``names``, or else those of ``kframe.leader.selectors``, with the options of the settings.

    Raises BadInput for an unknown selector or two for the same elections, and ConfigError for an unusable option.
    """
    origin = "--selector" if names else f"{settings.origin(SELECTORS)} key {SELECTORS}"
    if not names:
        names = tuple(text.strip() for text in (settings.get(SELECTORS) or "").split(",") if text.strip())
    with settings.located():
        options = _selector_options(settings, registry, names)
    try:
        by_kind = registry.selectors_for(names, options)
    except PluginError as error:
        raise BadInput(f"{origin}: {error}") from error
    specs = [registry.selectors[name] for name in names]
    records = []
    for spec in specs:
        values: dict[str, Any] = spec.values(options.get(spec.name, {}))
        records.append(ChosenSelectorRecord(spec.name, [kind.name for kind in spec.kinds], values))
    return ChosenSelectors(by_kind, tuple(records))


def _selector_options(settings: Settings, registry: Registry, names: Sequence[str]) -> dict[str, dict[str, object]]:
    """The options in the settings by selector. Those of a selector that is not in force are logged and left out."""
    options: dict[str, dict[str, object]] = {}
    for key, text in settings.values.items():
        if not key.startswith(SELECTOR_PREFIX):
            continue
        name, _, option = key.removeprefix(SELECTOR_PREFIX).rpartition(".")
        spec = registry.selectors.get(name)
        if spec is None:
            raise ConfigError(f"config key {key}", f"leader selector {name!r}", nearest(name, registry.selectors))
        known = {entry.name: entry for entry in spec.options}
        if option not in known:
            expected = f"one of {', '.join(known)}" if known else "no options"
            raise ConfigError(f"config key {key}", f"option {option!r} of selector {spec.name}", expected)
        value = known[option].value(text.strip(), f"config key {key}")
        if name in names:
            options.setdefault(name, {})[option] = value
        else:
            _log.warning("%s: %s has no effect: selector %s is not in force", settings.origin(key), key, name)
    return options
