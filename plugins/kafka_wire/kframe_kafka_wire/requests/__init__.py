"""Control requests to brokers: the transport, a channel for each broker, their responses, and merged queues."""
