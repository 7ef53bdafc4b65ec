"""Kafka's messages as bytes: the layouts of all versions, encoding and decoding, and the errors of malformed bytes.

A new message or field goes here. What a message means does not.
"""
