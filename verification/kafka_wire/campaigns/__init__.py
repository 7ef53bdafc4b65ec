"""Campaigns on real clusters: faults, linearizability, parity with Kafka's controller, and a soak test.

``python -m verification.kafka_wire.campaigns --help`` explains how to run one. Each campaign is a module with the
functions of ``__main__.Campaign``; what it observes and how it writes its page are beside it.
"""
