"""The ports of kframe, as protocols with their records: what a controller and its commands need from plugins."""
