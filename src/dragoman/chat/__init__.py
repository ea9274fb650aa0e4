"""Multi-model conversations."""
