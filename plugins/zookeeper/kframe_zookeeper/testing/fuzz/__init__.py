"""Fuzz all input from ZooKeeper: the content of znodes, and the answers to multi requests.

``python -m kframe_zookeeper.testing.fuzz --help`` explains how to run it and how to repeat a case.
"""
