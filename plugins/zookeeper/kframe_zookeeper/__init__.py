"""kframe on a real ZooKeeper: what Kafka 2.4 to 3.9 reads and writes there, read and written the same way."""
