"""A broker as its controller, its peers and its clients see it: a deterministic model, without I/O, clock or thread."""

from kframe_simulator.broker.broker import Broker, BrokerState
from kframe_simulator.broker.config import BrokerConfig

__all__ = ["Broker", "BrokerConfig", "BrokerState"]
