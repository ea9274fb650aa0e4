"""What a gateway remembers beyond one request: keys, usage, stored responses, rates and concurrency.

`base` says what every home does; `memory`, `sqlite`, `postgres` and `redis` are the homes; `ledger` is what the
gateway holds, and `connect` opens the one that an address names.
"""
