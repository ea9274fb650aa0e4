"""The state of a gateway beyond one request: keys, usage, stored responses, rates and concurrency.

`base` has the interfaces; `memory`, `sqlite`, `postgres` and `redis` implement them; `ledger` is what the gateway
uses, and `connect` opens the backend that an address names.
"""
