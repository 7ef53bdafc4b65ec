"""Whole controllers timed from outside, on a real ZooKeeper with brokers that only respond."""
