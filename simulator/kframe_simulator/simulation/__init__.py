"""Whole clusters in one thread from one seed: storage, network, controllers, brokers, clients and clocks."""
