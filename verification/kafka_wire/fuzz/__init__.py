"""Fuzz all input from brokers and clients: requests to the server, responses, and logins.

``python -m verification.kafka_wire.fuzz --help`` explains how to run it and how to repeat a case.
"""
