"""The configuration of commands and controllers by Kafka's keys: properties files, JAAS, options and variables."""
