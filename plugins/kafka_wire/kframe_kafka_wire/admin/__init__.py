"""The admin client of any Kafka cluster, the requests that a certain broker must answer, and captures by brokers."""
