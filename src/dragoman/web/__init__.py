"""The web page: live requests, the chat and a playground, served by the gateway's own HTTP server."""
