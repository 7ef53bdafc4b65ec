"""kframe's store on ZooKeeper, which reads and writes the znodes of Kafka 2.4 to 3.9 byte for byte."""
