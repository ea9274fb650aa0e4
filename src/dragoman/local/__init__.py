"""A real model without an account: llama.cpp in a process of its own, started when first asked, on loopback only.

`dragoman.connect("local/smollm2")`, or `local/PATH.gguf` for any other model. Nothing is ever downloaded.
"""
