"""The web page: live requests, the chat and a playground, served by the gateway's own HTTP server.

- `site`, `guard`, `serving`: routes and static files, login, and how the page is put in front of a gateway.
- `live`, `request_detail`, `body_views`, `connections`: the live view.
- `chat`, `conversation_hub`, `models`, `message_translation`: the chat.
- `playground`, `all_formats`, `trial`: the playground.
- `key_admin`: management of keys.

The page itself is written in TypeScript, in `web/` of the repository, and built into the folder `static`.
"""
