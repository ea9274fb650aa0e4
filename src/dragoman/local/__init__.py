"""Local models without an account: llama.cpp in a separate process, started on the first request, on loopback only.

`dragoman.connect("local/smollm2")`, or `local/PATH.gguf` for any other model. Nothing is ever downloaded.
"""
