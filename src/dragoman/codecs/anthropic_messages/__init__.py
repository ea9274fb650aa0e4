"""Anthropic Messages, also as Bedrock and Vertex AI serve them."""
