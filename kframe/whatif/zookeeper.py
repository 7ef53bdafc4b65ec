"""What-if operations on a cluster in ZooKeeper mode. No broker answers, and no time passes."""

from __future__ import annotations

from kframe.lazy import load_at_call
from kframe.whatif.modes import ModeOperations
from kframe.whatif.zookeeper_player import ZookeeperPlayer


class ZookeeperWhatIf(ZookeeperPlayer):
    """A cluster in ZooKeeper mode; see ``WhatIf``."""

    _operations = ModeOperations(
        load_at_call("kframe.whatif.create", "play_creation"),
        load_at_call("kframe.whatif.create", "play_expansion"),
        load_at_call("kframe.whatif.delete", "play_deletion"),
        load_at_call("kframe.whatif.reassign", "play_reassignment"),
        load_at_call("kframe.whatif.explain", "explain_elections"),
    )
