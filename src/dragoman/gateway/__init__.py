"""The gateway: any client in, any model out. `dragoman serve` runs it.

- `app`: the path of a request: endpoint, key, route, upstream, answer, records.
- `http_server`, `http1`, `http2`, `exchange`, `http_request`, `client_websocket`: the HTTP side of clients.
- `endpoints`, `client_protocols`, `client_request`: what a request asks for, and in which format.
- `routing`, `upstreams`, `relay`, `upstream_calls`, `upstream_http`: which upstream answers, and the call to it.
- `access`, `state`, `costs`, `expected_cost`: keys, limits, budgets and usage.
- `stored_responses`, `stored_interactions`, `message_threads`: state for upstreams without state.
- `signature_memory`, `answer_cache`, `mcp_tools`: what the gateway adds to requests.
- `other_endpoints`, `pass_through`, `batch_endpoints`, `embeddings_endpoint`, `realtime`, `mcp_endpoint`: other APIs.
- `capture`, `request_log`, `metrics`, `tracing`: what is recorded.
- `config`, `serving`, `workers`, `serve_command`: how it is configured and run.
"""
