"""Record formats: how earlier systems stored conversations. Histories without an API, so without streams and errors."""
