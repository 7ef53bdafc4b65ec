"""The files of plans: reassignment documents of Kafka's tools, with a stamp and with observers."""
