"""The engine timed: how long a broker failure or a controller failover takes, phase by phase."""
