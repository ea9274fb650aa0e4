"""Record formats: how earlier systems stored conversations. They have no API, and so no streams and no errors."""
