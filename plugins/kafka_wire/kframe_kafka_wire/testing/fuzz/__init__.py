"""Fuzz all input from brokers and clients: requests to the server, responses, and logins.

``python -m kframe_kafka_wire.testing.fuzz --help`` explains how to run it and how to repeat a case.
"""
