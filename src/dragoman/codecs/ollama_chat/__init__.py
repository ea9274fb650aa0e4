"""Ollama's own chat API (`/api/chat`)."""
