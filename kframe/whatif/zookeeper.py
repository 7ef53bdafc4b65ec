"""What-if operations on a cluster in ZooKeeper mode. No broker answers, and no time passes."""

from __future__ import annotations

from kframe.whatif.create import play_creation, play_expansion
from kframe.whatif.delete import play_deletion
from kframe.whatif.explain import explain_elections
from kframe.whatif.reassign import play_reassignment
from kframe.whatif.whatif import ModeOperations
from kframe.whatif.zookeeper_player import ZookeeperPlayer


class ZookeeperWhatIf(ZookeeperPlayer, kraft=False):
    """A cluster in ZooKeeper mode; see ``WhatIf``."""

    _operations = ModeOperations(play_creation, play_expansion, play_deletion, play_reassignment, explain_elections)
