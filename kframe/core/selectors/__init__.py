"""Leader selectors: calls the configured selector, validates its choices, and offers Kafka's own rules as selectors."""
