"""One module per API: its routes, its reader, its writers, its words for what is wrong."""
