"""The controller's memory: brokers, topics and partitions in columns, and the records that speak of them."""
