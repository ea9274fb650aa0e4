"""Fidelity of all conversions, feature by feature: a catalogue, a judge, and tables and pictures of verdicts."""
