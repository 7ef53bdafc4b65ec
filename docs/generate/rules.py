"""The rules of a KRaft controller by release and by feature level, for docs/reference/rules-by-release.md."""

from __future__ import annotations

from typing import Final

from docs.generate.markdown import table
from kframe.model.kraft.ids import METADATA_VERSION
from kframe.model.kraft.level_rules import LEVEL_RULES
from kframe.model.kraft.levels import level_name
from kframe.model.kraft.releases import RELEASES, RULES, Release, supported_features

#: The releases of the table; a snapshot of an earlier release has the rules of its release, too.
_SHOWN: Final = [release for release in RELEASES if release >= Release(3, 9)]


def rules_by_release() -> str:
    """Each rule that came with a release, and the releases that have it."""
    rows = [
        (
            f"`{rule}`",
            facts.text,
            *("yes" if release >= facts.since else "–" for release in _SHOWN),
            f"`{facts.source}`",
        )
        for rule, facts in RULES.items()
    ]
    return table(("name", "rule", *map(str, _SHOWN), "Kafka's method"), rows)


def features_by_release() -> str:
    """The levels of each feature that the controllers of a release support."""
    supported = [supported_features(release) for release in _SHOWN]
    names = list(dict.fromkeys(name for levels in supported for name in levels))
    rows = [
        (f"`{name}`", *("–" if name not in levels else "{}–{}".format(*levels[name]) for levels in supported))
        for name in names
    ]
    return table(("feature", *map(str, _SHOWN)), rows)


def rules_by_level() -> str:
    """Each rule that a level of a feature introduces."""
    rows = [
        (f"`{feature}`", str(level), level_name(level) if feature == METADATA_VERSION else "–", text)
        for feature, rules in LEVEL_RULES.items()
        for level, text in rules.items()
    ]
    return table(("feature", "level", "name", "rule"), rows)
