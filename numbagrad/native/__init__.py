"""Text to machine code: the layer that knows neither tape, op nor array."""
