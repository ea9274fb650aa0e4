"""The chat in a browser."""
