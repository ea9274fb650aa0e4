"""How faithful every crossing is, feature by feature: a catalogue, a judge, and tables and pictures of the verdicts."""
