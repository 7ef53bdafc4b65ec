"""Deterministic broker models without I/O, clock or threads."""

from kframe_simulator.broker.broker import Broker, BrokerState
from kframe_simulator.broker.config import BrokerConfig

__all__ = ["Broker", "BrokerConfig", "BrokerState"]
