"""Passes over the intermediate format: they make a request legal for its target, and an answer fit its client.

- `legalise`: which passes a request needs, and their order; `survey` collects the traits that decide it.
- `turns`, `pairing`, `names`, `provider_tools`: the passes over messages and tools.
- `private`: reports what only one family understands.
- `answers`: restores names and kinds of tools as the client declared them.
"""
