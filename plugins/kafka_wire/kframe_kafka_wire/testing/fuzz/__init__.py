"""Fuzz of everything that brokers and clients send us: requests to our server, replies to what we ask, logins.

``python -m kframe_kafka_wire.testing.fuzz --help`` says how to run it, and how to make one case again.
"""
