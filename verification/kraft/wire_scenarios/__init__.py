"""Plays KRaft scenarios over loopback to a running controller of kframe, as the recorder plays them to Kafka's."""
