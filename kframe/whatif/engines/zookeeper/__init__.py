"""The engine of a cluster in ZooKeeper mode: the core of kframe's controller on a store in memory."""
