"""psycopg is what says that no PostgreSQL answers."""

import dragoman
from dragoman.chat.stores import open_store

try:
    open_store("postgresql://127.0.0.1:1/none?connect_timeout=2", user="me")
    raise AssertionError("port 1 has answered")
except dragoman.NotConfigured as error:
    found = str(error)
assert "does not answer" in found, found
