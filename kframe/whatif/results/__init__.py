"""What an operation did: its outcome with changes, health, events and responses. Nothing here depends on a mode."""
