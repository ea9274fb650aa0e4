"""Multi-model conversations.

- `service`: one conversation with its participants, without a front end; `events` is what it reports.
- `entries`, `media`, `history`, `formatting`: the stored form, and how it is read.
- `views`, `tokens`: what one model sees, and how much of it fits.
- `answers`, `drafts`: answers in progress, and what survives a crash.
- `stores`: where conversations are kept.
- `terminal`: the chat in a terminal (the page is in `dragoman.web`).
"""
