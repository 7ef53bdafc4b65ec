"""Test tools: real ZooKeeper servers on loopback, certificates, and a proxy that breaks connections by script."""
