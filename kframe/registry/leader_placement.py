"""Leader selectors of kframe that decide where leaders are: not on some brokers, or in some racks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe.core.selectors.kafka_selectors import take_first
from kframe.errors import ConfigError
from kframe.model.arrays import Bool, Int32
from kframe.model.elections import ElectionBatch
from kframe.model.ids import ElectionKind
from kframe.model.whole_numbers import parse_whole

#: All kinds but PREFERRED, which leaves no choice.
PLACED: Final = (
    ElectionKind.OFFLINE,
    ElectionKind.REASSIGN,
    ElectionKind.CONTROLLED_SHUTDOWN,
    ElectionKind.INITIAL,
)


@dataclass(frozen=True, slots=True)
class AvoidBrokers:
    """The first candidate that may lead and is on none of the brokers; if there is none, Kafka's choice."""

    brokers: frozenset[int]
    name: str = "avoid-brokers"

    @classmethod
    def of(cls, brokers: str) -> AvoidBrokers:
        """The selector of an option: broker ids with commas between them. Raises ConfigError."""
        ids = [parse_whole(text.strip()) for text in brokers.split(",")]
        known = [broker_id for broker_id in ids if broker_id is not None]
        if len(known) < len(ids):
            raise ConfigError("selector avoid-brokers, option brokers", repr(brokers), "broker ids such as 1,2")
        return cls(frozenset(known))

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """See LeaderSelector."""
        _elect(batch, ~np.isin(batch.broker_ids, list(self.brokers)), leader)


@dataclass(frozen=True, slots=True)
class PreferRacks:
    """The first candidate that may lead and is in one of the racks; if there is none, Kafka's choice."""

    racks: frozenset[str]
    name: str = "prefer-racks"

    @classmethod
    def of(cls, racks: str) -> PreferRacks:
        """The selector of an option: racks with commas between them. Raises ConfigError."""
        names = [text.strip() for text in racks.split(",")]
        if not all(names):
            raise ConfigError("selector prefer-racks, option racks", repr(racks), "racks such as a,b")
        return cls(frozenset(names))

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """See LeaderSelector."""
        preferred = [number for number, name in enumerate(batch.racks) if name in self.racks]
        _elect(batch, np.isin(batch.broker_rack, preferred), leader)


def _elect(batch: ElectionBatch, is_preferred: Bool, leader: Int32) -> None:
    """Elect the first candidate that may lead, on a broker of the mask (b,) if one can."""
    may_lead = batch.may_lead.astype(np.bool_)
    take_first(batch.candidates, may_lead, leader)
    take_first(batch.candidates, may_lead & is_preferred[batch.candidates.values], leader)
