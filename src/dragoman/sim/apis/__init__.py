"""One module per API: its routes, its reader, its writers and its error messages."""
