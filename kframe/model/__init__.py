"""The controller context: brokers, topics and partitions in columns, and the records that refer to them."""
