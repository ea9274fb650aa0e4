"""The page: what a gateway does, the chat, and a playground, served by the gateway's own HTTP server."""
