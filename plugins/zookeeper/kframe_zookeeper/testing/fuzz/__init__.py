"""Fuzz of everything that ZooKeeper hands to us: what stands in znodes, and its answers to multi requests.

``python -m kframe_zookeeper.testing.fuzz --help`` says how to run it, and how to make one case again.
"""
