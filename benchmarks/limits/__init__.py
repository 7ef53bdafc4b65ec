"""What the hardware allows, and how cost grows with size."""
