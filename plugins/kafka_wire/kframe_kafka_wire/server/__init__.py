"""The server: it accepts connections, bounds their memory and rate, logs clients in, and calls handlers of ``apis``."""
