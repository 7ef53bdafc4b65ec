"""A whole cluster in one thread from one seed: storage, network, controllers, brokers, clients and clocks."""
