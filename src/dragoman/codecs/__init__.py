"""The codecs: one folder per wire format, each with the same modules and the same functions in them.

`decode_…` reads a body of the format into the intermediate format, `encode_…` writes one. `registry` finds a codec by
the name of its format. A folder has these modules:

- `request.py`, `response.py`, `errors.py`, `stream.py`: the four kinds of bodies.
- `messages.py`, `parts.py`, `tools.py` and the like: what requests and responses consist of.
- `wire.py`, `stream_wire.py`: the format's own types; `profile.py`: what the format can express, as data.

Modules directly in `codecs` are shared by several formats. `datasets` has formats of stored conversations, `records`
those of earlier systems.
"""
