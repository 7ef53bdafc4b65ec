"""The release of Kafka whose rules decided, and whether another possible release decides otherwise."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from kframe.model.kraft.releases import RELEASES, RULES, Release, ReleaseRule

#: The rules of ZooKeeper mode in words.
ZOOKEEPER_RULES: Final = "ZooKeeper (Kafka 3.9)"
#: Where the release is from: a user, the levels that registered nodes support, or nowhere.
ReleaseSource: TypeAlias = Literal["stated", "registrations", "assumed"]


class DecidingRule(Struct, frozen=True):
    """A rule that decided here, which the possible releases before ``since`` do not have."""

    name: str
    since: str
    text: str


class ReleaseRecord(Struct, frozen=True):
    """The release of Kafka whose rules decided. ``matters``: another of the ``possible`` ones decides otherwise here,
    by ``rules``."""

    release: str
    source: ReleaseSource
    possible: list[str]
    matters: bool
    rules: list[DecidingRule]

    @property
    def text(self) -> str | None:
        """What an answer says of an assumed release; None if it is known."""
        if self.source != "assumed":
            return None
        if self.matters:
            rules = "; ".join(f"since {rule.since} {rule.text}" for rule in self.rules)
            return f"release unknown: decided as Kafka {self.release}, and the release matters here: {rules}"
        return (
            f"release unknown: decided as Kafka {self.release}; {self.possible[0]} to {self.possible[-1]} decide alike"
        )


class ClusterRelease(Struct, frozen=True):
    """The release of a cluster's controllers. ``oldest``: the lowest that is possible."""

    release: Release
    source: ReleaseSource
    oldest: Release

    def record(self, consulted: Collection[ReleaseRule]) -> ReleaseRecord:
        """The release beside the rules that decided."""
        assumed = self.source == "assumed"
        possible = [release for release in RELEASES if release >= self.oldest] if assumed else [self.release]
        rules = [
            DecidingRule(rule, str(facts.since), facts.text)
            for rule, facts in RULES.items()
            if rule in consulted and possible[0] < facts.since <= possible[-1]
        ]
        return ReleaseRecord(str(self.release), self.source, list(map(str, possible)), bool(rules), rules)
