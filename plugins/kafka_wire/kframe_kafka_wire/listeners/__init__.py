"""The controller's id and listeners, and their TLS and SASL settings, by Kafka's keys.

A new key of a listener, key store or login module goes here.
"""
