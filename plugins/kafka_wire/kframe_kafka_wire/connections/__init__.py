"""Connections to brokers: TCP, TLS and login, versions of APIs, the search for the controller, settings of brokers.

The modules know how a request travels. ``requests`` and ``admin`` decide which requests are sent.
"""
