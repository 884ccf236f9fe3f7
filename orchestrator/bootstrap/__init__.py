"""Wires adapters to ports; everything above it is commands, everything below it knows nothing of the other parts."""
