"""The gateway: finds the endpoint of a request, runs its handler, records what happened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from random import getrandbits
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import structs

from dragoman.errors import DecodeError
from dragoman.gateway.access import Access, Caller, Denied
from dragoman.gateway.adapted_exchange import ADAPTERS, AdaptedExchange
from dragoman.gateway.answer_cache import AnswerCache, CachedAnswer, Lookup, replay_stream, replay_whole
from dragoman.gateway.batch_runner import BatchRunner
from dragoman.gateway.body_log import logged_bodies
from dragoman.gateway.capture import Capture
from dragoman.gateway.client_protocols import CLIENT_PROTOCOLS
from dragoman.gateway.client_request import ClientRequest, check_model_key, peek, with_model_in_body
from dragoman.gateway.config import Config
from dragoman.gateway.costs import PriceList
from dragoman.gateway.embeddings_endpoint import embed
from dragoman.gateway.endpoints import Endpoint, Operation, match_endpoint
from dragoman.gateway.exchange import Application, Exchange, Gone, Unattended
from dragoman.gateway.expected_cost import (
    ESTIMATE_HEADER,
    NOTHING_EXPECTED,
    Expected,
    charge_expected,
    expected_use,
    make_estimate,
    note_use,
)
from dragoman.gateway.gateway_errors import bad_request, unknown_model, unknown_path, unreadable_request
from dragoman.gateway.http_request import BadBody, BadRequest, Head, check_content_type, is_local_name
from dragoman.gateway.interactions_endpoints import INTERACTIONS_ENDPOINTS, follow
from dragoman.gateway.mcp_endpoint import McpEndpoint, mcp
from dragoman.gateway.mcp_tools import McpTools
from dragoman.gateway.merged_metrics import Peers
from dragoman.gateway.message_threads import MessageThreads, Thread
from dragoman.gateway.metrics import Metrics
from dragoman.gateway.model_catalogue import Catalogue
from dragoman.gateway.other_endpoints import JSON, OTHER_ENDPOINTS, Handler, worker_endpoints
from dragoman.gateway.pass_through import pass_through, usage_in
from dragoman.gateway.realtime import realtime
from dragoman.gateway.relay import INERT, LARGE, Failed, Relay, loss_headers, off_loop_if_large, refuse
from dragoman.gateway.request_log import Log
from dragoman.gateway.request_records import Record
from dragoman.gateway.responses_endpoints import RESPONSES_ENDPOINTS
from dragoman.gateway.routing import Candidate, NoSuchModel, Plan, Router
from dragoman.gateway.signature_memory import SignatureMemory, is_signed
from dragoman.gateway.state.base import Unavailable
from dragoman.gateway.state_errors import UnknownResponse
from dragoman.gateway.stored_interactions import Interactions, KeptInteraction
from dragoman.gateway.stored_responses import Background, Keeping, Responses
from dragoman.gateway.token_counting import COUNTERS, estimate
from dragoman.gateway.upstream_answers import StreamedAnswer, WholeAnswer
from dragoman.gateway.upstream_calls import prepare_count
from dragoman.gateway.upstreams import Upstream
from dragoman.ir import Completion, Failure, Usage

if TYPE_CHECKING:
    from dragoman.gateway.tracing import Tracing

KeptAnswer: TypeAlias = Keeping | Thread | KeptInteraction
_CANCELLED = 499
_LONGEST_MESSAGE = 2_000
"""Maximum characters of an error message that is sent to the client and logged."""
_LONGEST_NAME = 300
"""Maximum characters of a model name that are logged and counted; real names are shorter."""
_AWAY = Failure("overloaded", "The gateway cannot reach its database of keys and limits.", 503, retry_after=2.0)
_encode = msgspec.json.encode


class Gateway:
    """The gateway of one process.

    A new configuration replaces `router` and `access`; requests in progress keep the ones they began with.
    """

    def __init__(
        self, router: Router, access: Access, *, log: Log, responses: Responses, capture: Capture | None = None
    ) -> None:
        self.router = router
        self.access = access
        self.log = log
        self.responses = responses
        self.threads = MessageThreads(responses.store)
        self.interactions = Interactions(responses.store)
        self._stateful = {one.format: one for one in (self.responses, self.interactions)}
        """The stores of the stateful formats, by format."""
        self.signatures = SignatureMemory(responses.store, router.config.server.signature_seconds)
        self.batches = BatchRunner(responses.store.objects, self, lambda: self.config.server, log)
        self.capture = capture
        """None if the page is off; no requests are captured then."""
        self.tracing: Tracing | None = None
        self.catalogue = Catalogue(router)
        self.prices = PriceList(router.config)
        self.cache: AnswerCache | None = None
        """The response cache; None if it is off."""
        self.mcp_tools: McpTools | None = None
        self.mcp_endpoint: McpEndpoint | None = None
        self.metrics = Metrics()
        self.relay = Relay()
        self.other_workers: Peers | None = None
        """The other workers, if there are any."""
        self.private: dict[str, Application] = worker_endpoints(self)
        """Handlers for other workers only, by path: what each reports about itself."""
        self._retiring: set[asyncio.Future[None]] = set()

    @property
    def config(self) -> Config:
        return self.router.config

    def replace(self, router: Router, access: Access) -> None:
        router.adopt(self.router)
        kept = set(router.upstreams_in_use())
        retired = [upstream for upstream in self.router.upstreams_in_use() if upstream not in kept]
        self._retiring.add(asyncio.ensure_future(self._retire(retired)))
        self.router, self.access, self.catalogue = router, access, Catalogue(router)
        self.prices = PriceList(router.config)

    async def _retire(self, upstreams: list[Upstream]) -> None:
        """Close the connections of these upstreams once the last stream over them has ended."""
        with suppress(asyncio.CancelledError):  # the gateway is closing
            while any(upstream.in_flight for upstream in upstreams):  # noqa: ASYNC110 - rare, and nothing waits for it
                await asyncio.sleep(0.5)
        for upstream in upstreams:
            await upstream.channel.transport.close()

    async def close(self) -> None:
        for task in self._retiring:
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        for upstream in self.router.upstreams_in_use():
            await upstream.channel.transport.close()

    async def __call__(self, exchange: Exchange) -> None:
        endpoint = match_endpoint(exchange.head)
        started = time.perf_counter()
        record = Record(
            id=f"req_{getrandbits(128).to_bytes(16, 'big').hex()}",
            client=endpoint.format,
            operation=endpoint.operation,
            started=started,
        )
        if endpoint.operation in _SHOWN:
            if self.capture is not None:
                record.capture = self.capture.begin(record, exchange.head)
                exchange.on_sent = record.capture.record_answer
            if self.tracing is not None:
                record.trace = self.tracing.begin(record, exchange.head)
        if endpoint.adapter:
            exchange = AdaptedExchange(exchange, ADAPTERS[endpoint.adapter]())
        self.metrics.in_flight += 1
        try:
            await _HANDLERS[endpoint.operation](self, endpoint, exchange, record)
        except (Gone, asyncio.CancelledError):
            _note_cancelled(record)
            raise
        except Exception as error:  # noqa: BLE001 - a bug of ours must fail only this request
            self._answer_with_error(exchange, record, error)
        finally:
            self.metrics.in_flight -= 1
            self.done(record)

    def _answer_with_error(self, exchange: Exchange, record: Record, error: Exception) -> None:
        """Send the error for what a handler has raised. Raises `Gone`."""
        try:
            if isinstance(error, NoSuchModel):
                self.refuse(exchange, record, unknown_model(record.client, error.model, error.hint))
            elif isinstance(error, DecodeError):
                self.refuse(exchange, record, unreadable_request(error))
            elif isinstance(error, Denied | BadBody | UnknownResponse):
                self.refuse(exchange, record, error.failure)
            elif isinstance(error, Unavailable):
                self.log.event("database_away", id=record.id, error=str(error))
                self.refuse(exchange, record, _AWAY)
            elif isinstance(error, Failed):
                self._send_failure(exchange, record, error)
            else:
                record.error = _describe_exception(error)
                self.log.event("error", id=record.id, error=record.error)
                exchange.close_after()
                self.refuse(exchange, record, Failure("server", "Internal error of the gateway.", 500))
        except Gone:
            _note_cancelled(record)
            raise

    def done(self, record: Record) -> None:
        if record.failure == "cancelled":  # the client left: what it was sent was paid for
            charge_expected(record)
        self._measure(record)
        if record.capture is not None:
            record.capture.record_end()
            if not self.log.silent and self.router.config.log.bodies:
                self.log.event("bodies", id=record.id, **logged_bodies(record.capture, self.config.log.max_body))
            record.capture = None
        if record.trace is not None:
            record.trace.record_end(record)
        if record.operation in _COUNTED:
            if len(record.model) > _LONGEST_NAME:
                record.model = f"{record.model[:_LONGEST_NAME]}…"
            self.metrics.add(record)
            self.access.account(record)
            if not self.log.silent:
                self.log.request(record)

    def _measure(self, record: Record) -> None:
        record.seconds = time.perf_counter() - record.started
        usage = record.usage
        # An upstream that reports negative tokens must not lower what a key has spent.
        if usage is not None and (usage.input < 0 or usage.output < 0):
            record.usage = structs.replace(usage, input=max(usage.input, 0), output=max(usage.output, 0))
        if record.cost is None and record.usage is not None:
            record.cost = self.prices.cost(record.upstream, record.target, record.usage)

    async def settle(self, caller: Caller, record: Record) -> None:
        """Record the cost before the answer ends, so that no complete answer goes unrecorded."""
        charge_expected(record)
        self._measure(record)
        await caller.settle(record)

    def refuse(self, exchange: Exchange, record: Record, failure: Failure) -> None:
        if len(failure.message) > _LONGEST_MESSAGE:  # it quotes what the client sent, which may be megabytes
            failure = structs.replace(failure, message=f"{failure.message[:_LONGEST_MESSAGE]}…")
        if failure.request_id is None and record.body_id is not None:
            failure = structs.replace(failure, request_id=record.body_id)
        record.failure = failure.kind
        record.error = record.error or failure.message
        if exchange.started:
            return
        record.status = refuse(exchange, failure, record.client, _marks(record))

    def _send_failure(self, exchange: Exchange, record: Record, failed: Failed) -> None:
        raw = failed.raw
        if raw is None:
            self.refuse(exchange, record, failed.failure)
            return
        record.failure, record.error, record.status = failed.failure.kind, failed.failure.message, raw.status
        exchange.send(raw.status, {**record.id_headers, **JSON, **raw.headers, **INERT, **_marks(record)}, raw.body)

    # ── generating ──

    async def admit(self, endpoint: Endpoint, exchange: Exchange, record: Record) -> Caller:
        """Check the caller before any of the body is read, then read the body to `exchange.body`."""
        if "origin" in exchange.head.headers:
            self._check_page(exchange)
        elif not self.access.required:
            self._check_host(exchange.head)
        if self.access.required:
            caller = await self.access.caller(endpoint.format, exchange.head, exchange.digest)
            record.key, record.key_id = caller.name, caller.id
        else:
            caller = self.access.anonymous(endpoint.format)
        try:
            if not exchange.receive_arrived():
                await exchange.receive()
        except BadRequest as bad:
            raise BadBody(bad_request(bad)) from None
        return caller

    def _check_page(self, exchange: Exchange) -> None:
        """Refuse web pages of origins that are not allowed: a page must not spend the user's keys."""
        origin = exchange.head.headers.get("origin")
        if origin is None:
            return
        allowed = self.config.server.origins
        if origin not in allowed and "*" not in allowed:
            raise Denied(
                Failure("permission", f"pages of {origin} may not call this gateway (see server.origins)", 403)
            )
        exchange.also = {"access-control-allow-origin": origin, "vary": "origin"}

    def _check_host(self, head: Head) -> None:
        """Refuse host names that a web page can point at this machine (DNS rebinding). Called if no key is required.

        To the browser, such a page has the same origin as the gateway, and same-origin GETs have no `Origin` header.
        """
        host = head.headers.get("host", "")
        if host and head.method == "GET" and not is_local_name(host):
            if any(origin.rpartition("//")[2] == host for origin in self.config.server.origins):
                return
            raise Denied(
                Failure(
                    "permission",
                    f"without keys, this gateway serves local names only, not {host} (see server.keys, server.origins)",
                    403,
                )
            )

    async def preflight(self, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:  # noqa: ARG002
        self._check_page(exchange)
        requested = exchange.head.headers.get("access-control-request-headers", "*")
        methods = {"access-control-allow-methods": "GET, POST, DELETE", "access-control-allow-headers": requested}
        record.status = 204
        exchange.send(204, {**methods, "access-control-max-age": "600"})

    def client_request(self, endpoint: Endpoint, exchange: Exchange, record: Record) -> ClientRequest:
        protocol = CLIENT_PROTOCOLS[endpoint.format]
        check_content_type(exchange.head)
        body = exchange.body
        if record.capture is not None:
            record.capture.record_request(body)
        known = peek(body, endpoint.format)
        model = endpoint.model or known.model or ""
        if not model:
            raise DecodeError(path="$.model", expected="the name of a model", got="none", source=endpoint.format)
        stream = known.stream if endpoint.stream is None else endpoint.stream
        record.model = model
        record.stream = protocol.streams_by_default if stream is None else stream
        if (
            endpoint.model
            and not protocol.model_in_path
            and (known.model is None or known.stream is not endpoint.stream)
        ):
            body = with_model_in_body(body, model, stream=record.stream)
            known = peek(body, endpoint.format)
        return ClientRequest(
            protocol=protocol,
            body=body,
            model=model,
            stream=record.stream,
            headers=exchange.head.headers,
            options=protocol.options(exchange.head.query, known.stream_options or {}) if record.stream else {},
            known=known,
        )

    def plan_request(self, caller: Caller, client_request: ClientRequest, record: Record) -> Plan:
        caller.may_use(client_request.model)
        if caller.is_restricted:
            check_model_key(client_request)
        plan = self.router.plan(client_request.model, client_request.protocol.format)
        record.route = plan.route
        return plan

    async def generate(self, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
        caller = await self.admit(endpoint, exchange, record)
        client_request = self.client_request(endpoint, exchange, record)
        plan = self.plan_request(caller, client_request, record)
        if ESTIMATE_HEADER in client_request.headers:
            await self._estimate(caller, client_request, plan, exchange, record)
            return
        if self.mcp_tools is not None and self.mcp_tools.requested_servers(client_request):
            await self._run_tools(self.mcp_tools, caller, client_request, plan, exchange, record)
            return
        beginning = self._begin_keeping(client_request, plan, caller.id, exchange)
        keeping = None if beginning is None else await beginning
        sent = keeping.client_request if keeping else client_request
        await self.enter(caller, client_request, plan, record)
        try:
            if self.signatures.seconds and not plan.uses_only(sent.protocol.format):
                await self._recall_signatures(sent, caller.id)
            if keeping is not None:
                skips_model = client_request.known.generate is False
                if await self._answer_early(keeping, caller, plan, exchange, record, skips_model=skips_model):
                    return
            cache, cached = self.cache, None
            if cache is not None:
                stateful = keeping is None and self._leaves_state(client_request)
                cached = Lookup("bypass") if stateful else await cache.look_up(sent, plan, caller.id)
                record.cache = cached.outcome
                if cached.answer is not None:
                    record.cost = 0.0
                    await self._send_existing(caller, sent, cached.answer, exchange, record, keeping)
                    return
            started = await self.relay.ask(sent, plan, record)
            record.first_byte = time.perf_counter() - record.started
            if record.capture is not None:
                record.capture.began_to_answer()
            if isinstance(started, WholeAnswer):
                await self._put_whole(caller, started, exchange, record, keeping)
            else:
                await self._put_stream(caller, started, exchange, record, keeping)
            if cache is not None and cached is not None and not record.failure:
                answer = started.completion if isinstance(started, WholeAnswer) else started.translator.completion
                await cache.keep(cached, answer, record)
        finally:
            caller.leave()

    async def _answer_early(
        self,
        keeping: KeptAnswer,
        caller: Caller,
        plan: Plan,
        exchange: Exchange,
        record: Record,
        *,
        skips_model: bool,
    ) -> bool:
        """Answer requests for background work or for no generation; return whether this was one."""
        if isinstance(keeping, Thread):
            return False
        if keeping.in_background:
            await self._start_background(caller, keeping, plan, exchange, record)
            return True
        if skips_model and isinstance(keeping, Keeping):
            await self._warm_up(keeping, exchange, record)
            return True
        return False

    async def _run_tools(
        self,
        tools: McpTools,
        caller: Caller,
        client_request: ClientRequest,
        plan: Plan,
        exchange: Exchange,
        record: Record,
    ) -> None:
        """Run MCP tools for the client until the model has answered, and send the answer."""
        if client_request.known.background:
            raise BadBody(Failure("invalid_request", "Tools of MCP servers are not run in the background.", 400))
        beginning = self._begin_keeping(client_request, plan, caller.id, exchange)
        keeping = None if beginning is None else await beginning
        sent = keeping.client_request if keeping else client_request
        await self.enter(caller, client_request, plan, record)
        try:
            if self.signatures.seconds and not plan.uses_only(sent.protocol.format):
                await self._recall_signatures(sent, caller.id)
            completion = await tools.run(self.relay, sent, plan, caller, record)
            answer = CachedAnswer(completion=completion, upstream=record.upstream, target=record.target, created=0.0)
            await self._send_existing(caller, sent, answer, exchange, record, keeping)
        finally:
            caller.leave()

    def _leaves_state(self, client_request: ClientRequest) -> bool:
        """Whether an upstream stores the answer, or stores what the request refers to; the cache has neither."""
        known = client_request.known
        refers = (known.previous_response_id, known.previous_interaction_id, known.conversation, known.thread)
        keeps = client_request.protocol.format in self._stateful and known.store is not False
        return keeps or any(one is not None for one in refers)

    async def _send_existing(
        self,
        caller: Caller,
        client_request: ClientRequest,
        cached: CachedAnswer,
        exchange: Exchange,
        record: Record,
        keeping: KeptAnswer | None,
    ) -> None:
        """Send an answer that already exists in the client's format, whole or as a stream."""
        record.upstream, record.target = cached.upstream, cached.target
        record.status, record.complete = 200, True
        replay = replay_stream if client_request.stream else replay_whole
        content, losses = replay(cached, client_request)
        record.losses += losses
        record.first_byte = time.perf_counter() - record.started
        if keeping is not None and client_request.stream:
            keeping.publish(content)
            await keeping.keep_streamed()
        elif keeping is not None:
            content = await keeping.keep(content)
        await self.signatures.remember(cached.completion, caller.id)
        if caller.grant is not None:
            await self.settle(caller, record)
        else:
            self._measure(record)
        headers = {**record.id_headers, **_marks(record)}
        if record.cache == "hit":
            headers["age"] = str(cached.age)
        if not client_request.stream:
            exchange.send(200, {**JSON, **headers}, content)
            return
        kind = _stream_type(client_request)
        exchange.start(200, {"content-type": kind, "cache-control": "no-cache", **headers}, content)
        exchange.finish()

    async def _estimate(
        self, caller: Caller, client_request: ClientRequest, plan: Plan, exchange: Exchange, record: Record
    ) -> None:
        """Send what the request would use and cost, without calling a provider. It counts as a request of the key."""
        await self.enter_free(caller)
        try:
            record.operation, record.status = "estimate", 200
            size = len(client_request.body)
            expected = await off_loop_if_large(size, expected_use, client_request, plan, self.prices)
            exchange.send(200, {**record.id_headers, **JSON, **_marks(record)}, _encode(make_estimate(expected, plan)))
        finally:
            caller.leave()

    async def _recall_signatures(self, client_request: ClientRequest, owner: str) -> None:
        """Look up what vendors signed earlier in this conversation, for clients of other formats."""
        client_request.hides_signatures = not client_request.protocol.keeps_unknown_keys
        if len(client_request.body) <= LARGE:
            request = client_request.decode()
        else:
            request = await asyncio.to_thread(client_request.decode)
        if self.signatures.may_know(request):
            client_request.remembered = await self.signatures.recall(request, owner)

    def _begin_keeping(
        self, client_request: ClientRequest, plan: Plan, owner: str, exchange: Exchange
    ) -> Awaitable[KeptAnswer | None] | None:
        """Return the state that this request refers to or creates, if it is stored here; None for most formats."""
        format = client_request.protocol.format
        if format == Responses.format:
            return self.responses.begin(client_request, plan, owner, exchange.local)
        if format == Interactions.format:
            return self.interactions.begin_interaction(client_request, plan, owner)
        if client_request.known.thread is not None and format == MessageThreads.format:
            return self.threads.begin(client_request, plan, owner)
        return None

    def enter(self, caller: Caller, client_request: ClientRequest, plan: Plan, record: Record) -> Awaitable[None]:
        """Admit a request under the limits of the gateway and of the key. Raises `Denied`."""
        if caller.grant is not None and caller.has_budget and record.operation != "count":
            return self._enter_reserving(caller, client_request, plan, record)
        return self.enter_at(caller, record)

    async def _enter_reserving(self, caller: Caller, client_request: ClientRequest, plan: Plan, record: Record) -> None:
        """Admit a request of a key with a budget, and reserve its expected cost."""
        size = len(client_request.body)
        expected = await off_loop_if_large(size, expected_use, client_request, plan, self.prices)
        await self.enter_charging(caller, record, expected)

    async def enter_charging(self, caller: Caller, record: Record, expected: Expected) -> None:
        """Admit a request; its key is charged what is expected if the upstream does not report what was used."""
        if caller.has_budget:
            record.expected = Usage(input=expected.input, output=expected.output)
        await self.enter_at(caller, record, expected)

    async def enter_at(self, caller: Caller, record: Record, expected: Expected = NOTHING_EXPECTED) -> None:
        """Admit a request whose expected cost is given, or cannot be known before it has ended."""
        self._check_crowd()
        if caller.grant is not None:
            await caller.enter(record.id, expected.cost or 0.0, expected.input + expected.output)

    async def enter_free(self, caller: Caller) -> None:
        """Admit a request that costs nothing itself. Raises `Denied`."""
        self._check_crowd()
        await caller.enter_free()

    def _check_crowd(self) -> None:
        if self.metrics.in_flight > self.router.config.server.max_requests:
            words = "The gateway has reached its limit of requests in progress."
            raise Denied(Failure("overloaded", words, 503, retry_after=1.0))

    async def _put_whole(
        self, caller: Caller, whole: WholeAnswer, exchange: Exchange, record: Record, keeping: KeptAnswer | None
    ) -> None:
        if not whole.upstream_call.same:
            record.losses += whole.encoded.losses
        content = whole.encoded.content if keeping is None else await keeping.keep(whole.encoded.content)
        record.status = whole.status
        if whole.completion is not None:
            note_use(record, whole.completion)
            if not whole.upstream_call.same:
                if is_signed(whole.completion.messages):
                    await self.signatures.remember(whole.completion, caller.id)
            elif record.client in self._stateful:
                await self._note(whole, whole.completion.id, record, keeping)
        if caller.grant is not None:
            await self.settle(caller, record)
        elif record.usage is not None:
            record.cost = self.prices.cost(record.upstream, record.target, record.usage)
        exchange.send(whole.status, {**record.id_headers, **JSON, **whole.headers, **_marks(record)}, content)

    async def _put_stream(
        self,
        caller: Caller,
        streamed: StreamedAnswer,
        exchange: Exchange,
        record: Record,
        keeping: KeptAnswer | None,
    ) -> None:
        client_request, translator = streamed.upstream_call.client_request, streamed.translator
        record.status = 200
        kind = _stream_type(client_request)
        own = {**record.id_headers, "content-type": kind, "cache-control": "no-cache"}
        headers = {**own, **streamed.headers, **_marks(record)}

        async def ending() -> None:
            note_use(record, translator.completion)
            if translator.failure is not None:
                record.failure = translator.failure.kind
            if keeping is not None:
                await keeping.keep_streamed()
            if not streamed.upstream_call.same:
                await self.signatures.remember(translator.completion, caller.id)
            await self._note(streamed, translator.completion.id, record, keeping)
            if caller.grant is not None:
                await self.settle(caller, record)

        remembers = bool(self.signatures.seconds) and not streamed.upstream_call.same
        waits = caller.grant is not None or keeping is not None or remembers or record.client in self._stateful
        broken: BaseException | None = None
        try:
            exchange.start(200, headers, streamed.first)
            publish = None if keeping is None else keeping.publish
            await self.relay.stream(streamed, exchange, publish, ending if waits else None)
        except BaseException as error:  # noqa: BLE001 - raised again below: compiled, `finally` must not wait (decision 28)
            broken = error
        self._note_streamed(streamed, record)
        await self._note(streamed, translator.completion.id, record, keeping)
        if keeping is not None:  # also if the client disconnected at the last event
            await keeping.keep_streamed()
        if broken is not None:
            try:
                raise broken
            finally:
                del broken  # it refers to this frame, and would keep all of it until the next garbage collection

    def _note_streamed(self, streamed: StreamedAnswer, record: Record) -> None:
        """Record a stream that has ended or broken off."""
        streamed.release()
        translator = streamed.translator
        completion = translator.completion
        if not record.settled:
            note_use(record, completion)
        record.complete = completion.finish is not None
        record.losses += translator.losses
        if translator.failure is not None:
            record.failure, record.error = translator.failure.kind, translator.failure.message
        if record.trace is not None:
            record.trace.record_answer(completion, record.failure)

    async def _note(
        self, started: WholeAnswer | StreamedAnswer, id: str | None, record: Record, keeping: KeptAnswer | None
    ) -> None:
        if started.upstream_call.same and keeping is None and record.client in self._stateful:
            await self._stateful[record.client].note(id, record.upstream, record.key_id)

    async def _warm_up(self, keeping: Keeping, exchange: Exchange, record: Record) -> None:
        """Handle `generate: false`: store the input without calling the model."""
        events = keeping.empty_stream(record.model)
        record.status, record.complete = 200, True
        keeping.publish(events)
        await keeping.keep_streamed()
        exchange.start(200, {"content-type": "text/event-stream"}, events)
        exchange.finish()

    async def _start_background(
        self, caller: Caller, keeping: Keeping | KeptInteraction, plan: Plan, exchange: Exchange, record: Record
    ) -> None:
        """Reply with a queued response now, and run the request in the background."""
        background = keeping.background(plan.route)
        promise = await background.queue()
        worker = caller.hand_over()
        captured, record.capture = record.capture, None

        async def work() -> None:
            later = Record(id=record.id, client=record.client, operation="generate", started=record.started)
            later.model, later.route = record.model, record.route
            later.key, later.key_id, later.expected = record.key, record.key_id, record.expected
            later.capture = captured
            later.trace = None if record.trace is None else record.trace.fork()
            failure: Failure | None = None
            try:
                try:
                    await self._run_in_background(keeping, plan, worker, background, later)
                except Failed as failed:
                    failure = failed.failure
                    later.status, later.failure = failure.status or 500, failure.kind
                except asyncio.CancelledError:
                    later.status, later.failure = _CANCELLED, "cancelled"
                if failure is not None:
                    await background.failed(failure)
                elif later.failure == "cancelled":
                    await background.cancelled()
            finally:
                worker.leave()
                self.done(later)

        running = keeping.running if isinstance(keeping, KeptInteraction) else None
        self._stateful[record.client].start(background, work())
        record.operation = "response"
        record.status = 200
        if running is not None and record.stream:
            await follow(running.events, 0, exchange, record)
        else:
            exchange.send(200, {**JSON, **_marks(record)}, promise)

    async def _run_in_background(
        self,
        keeping: Keeping | KeptInteraction,
        plan: Plan,
        worker: Caller,
        background: Background,
        later: Record,
    ) -> None:
        """Answer a background request. Raises `Failed`."""
        started = await self.relay.ask(keeping.client_request, plan, later)
        completion = await self._read_to_end(started, keeping, later)
        if completion is not None:
            note_use(later, completion)
        await self.settle(worker, later)
        if completion is not None and not started.upstream_call.same:
            await self.signatures.remember(completion, worker.id)
        await background.completed(started.encoded.content if isinstance(started, WholeAnswer) else b"")

    async def _read_to_end(
        self, started: WholeAnswer | StreamedAnswer, keeping: Keeping | KeptInteraction, record: Record
    ) -> Completion | None:
        """Return the answer of a background request. Raises `Failed` if the stream broke off."""
        if isinstance(started, WholeAnswer):
            record.status = started.status
            return started.completion
        record.status = 200
        try:
            await self.relay.stream(started, Unattended(), keeping.publish)
        finally:
            started.release()
            record.losses += started.translator.losses
        if started.translator.failure is not None:
            raise Failed(started.translator.failure)
        return started.translator.completion

    # ── counting ──

    async def count(self, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
        caller = await self.admit(endpoint, exchange, record)
        client_request = self.client_request(endpoint, exchange, record)
        plan = self.plan_request(caller, client_request, record)
        await self.enter(caller, client_request, plan, record)
        try:
            await self._count(client_request, plan.candidates[0], exchange, record)
        finally:
            caller.leave()

    async def _count(
        self, client_request: ClientRequest, candidate: Candidate, exchange: Exchange, record: Record
    ) -> None:
        format = client_request.protocol.format
        counter = COUNTERS[format]
        record.status = 200
        if candidate.upstream.channel.provider.format != format:
            headers = {**JSON, "x-dragoman-estimated": "true", **record.id_headers}
            tokens = await off_loop_if_large(len(client_request.body), estimate, client_request.body)
            exchange.send(200, headers, _encode(counter.encode(tokens)))
            return
        await self.forward(client_request, candidate, counter.path, exchange, record)

    async def forward(
        self,
        client_request: ClientRequest,
        candidate: Candidate,
        path: Callable[[str], str],
        exchange: Exchange,
        record: Record,
        spender: Caller | None = None,
    ) -> None:
        """Call the upstream at another path of the client's own format, and pass its answer on.

        `spender` pays for the tokens that the answer reports; None if the endpoint is free.
        """
        upstream_call = prepare_count(client_request, candidate, path)
        record.upstream, record.target = candidate.upstream.name, candidate.model
        if record.capture is not None:
            record.capture.record_attempt(upstream_call, candidate.upstream.name, candidate.model)
        whole = await self.relay.forward(upstream_call, candidate.upstream)
        if record.capture is not None:
            record.capture.record_upstream_answer(whole.status, whole.body)
        record.status = whole.status
        if spender is not None:
            record.usage = usage_in(whole.body)
            await self.settle(spender, record)
        headers = {**record.id_headers, **JSON, **whole.headers, "x-request-id": record.id}
        exchange.send(whole.status, headers, whole.body)

    # ── no endpoint ──

    async def none(self, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
        self.refuse(
            exchange, record, unknown_path(endpoint.format, exchange.head, other_method=endpoint.operation == "method")
        )


_HANDLERS: Mapping[Operation, Handler] = {
    **OTHER_ENDPOINTS,
    **RESPONSES_ENDPOINTS,
    **INTERACTIONS_ENDPOINTS,
    "generate": Gateway.generate,
    "count": Gateway.count,
    "pass": pass_through,
    "embed": embed,
    "realtime": realtime,
    "mcp": mcp,
    "preflight": Gateway.preflight,
    "none": Gateway.none,
    "method": Gateway.none,
}
_SHOWN: frozenset[Operation] = frozenset({"generate", "count", "compact"})
"""Operations that the page and traces show."""
_COUNTED: frozenset[Operation] = _SHOWN | {"pass", "embed", "realtime"}
"""Operations that are logged, measured and added to the usage of keys."""


def _note_cancelled(record: Record) -> None:
    if not record.complete:
        record.status, record.failure = _CANCELLED, "cancelled"


def _stream_type(client_request: ClientRequest) -> str:
    return "application/json" if client_request.options.get("array") else client_request.protocol.stream_type


def _marks(record: Record) -> dict[str, str]:
    marks = {"x-request-id": record.id}
    if record.upstream:
        marks["x-dragoman-upstream"] = f"{record.upstream}/{record.target}"
    if record.mcp_calls:
        marks["x-dragoman-mcp-calls"] = str(record.mcp_calls)
    if record.cache:
        marks["x-dragoman-cache"] = record.cache
    if record.cost is not None:
        marks["x-dragoman-cost"] = f"{record.cost:.10f}".rstrip("0").rstrip(".")
    return marks | loss_headers(record.losses) if record.losses else marks


def _describe_exception(error: BaseException) -> str:
    """Return only the type and place of an error: its message may quote secrets."""
    trace = error.__traceback__
    place = ""
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} at {place}"
