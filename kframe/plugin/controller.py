"""A running controller of a ZooKeeper cluster, as servers and tests call it."""

from __future__ import annotations

from kframe.runtime.controller import Controller, IsrProposal

__all__ = ["Controller", "IsrProposal"]
