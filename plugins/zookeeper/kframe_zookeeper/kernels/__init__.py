"""The compiled code between columns and ZooKeeper's bytes; ``verification/reference/jute.py`` has the references."""
