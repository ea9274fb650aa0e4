"""Law 7: a call of an answer that was blocked, failed or cut inside the call is never offered, and never run."""

import asyncio
from collections.abc import Callable
from typing import Any

import dragoman
from dragoman import ir
from dragoman.agent import Agent, tool
from dragoman.chat.chunks import ChunkReader
from dragoman.drivers import ScriptedDriver
from dragoman.drivers.replay import Replayed, ReplayTransport
from dragoman.errors import ProviderError, StreamError
from tests.support.cases import each
from tests.support.formats import FORMATS, MODELS, refusals
from tests.support.promises import promise
from tests.support.ugly import chat_answer
from tests.support.withheld import ENDINGS, FIRST, LAST, NOTHING, Ending, events, streamed, whole

pytestmark = promise("law:7-no-guessing")

EACH = each("ending", ENDINGS)
CUT = [ending for ending in ENDINGS if ending.reason == "cut"]
EACH_CUT = each("ending", CUT)
EACH_OTHER = each("ending", [one for one in ENDINGS if one not in CUT])
HOW = each("write", [whole, streamed], ids=["whole", "streamed"])
Write = Callable[..., bytes]

PROVIDERS = {
    "openai-chat": "openai-chat/gpt-4.1",
    "openai-responses": "openai/gpt-5.1",
    "anthropic-messages": "anthropic/claude-sonnet-4-5",
    "gemini": "gemini/gemini-2.5-flash",
    "vertex": "vertex/gemini-2.5-flash",
    "bedrock-converse": "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "ollama-chat": "ollama/qwen3",
    "cohere-chat": "cohere/command-a-03-2025",
    "gemini-interactions": "gemini-interactions/gemini-2.5-flash",
}


def test_every_format_has_endings_that_withhold() -> None:
    assert {ending.source for ending in ENDINGS} == set(FORMATS)
    assert {(ending.source, ending.reason) for ending in ENDINGS} >= {
        (source, reason) for source in FORMATS for reason in ("cut", "unknown")
    }


def read(body: bytes, ending: Ending, write: Write) -> ir.Completion:
    if write is whole:
        return dragoman.decode_response(body, ending.source)
    decoder = dragoman.StreamDecoder(ending.source)
    try:
        return dragoman.accumulate([*decoder.feed(body), *decoder.close()])
    except StreamError as error:
        return error.partial


def names(completion: ir.Completion) -> list[str]:
    return [call.name for call in completion.tool_calls]


def withheld(completion: ir.Completion) -> list[tuple[str, str]]:
    return [(one.call.name, one.reason) for one in completion.withheld_calls]


@EACH_OTHER
@HOW
def test_no_call_of_a_blocked_answer_is_offered(ending: Ending, write: Write) -> None:
    completion = read(write(ending, FIRST, LAST), ending, write)
    assert names(completion) == []
    assert withheld(completion) == [("look", ending.reason), ("rm", ending.reason)]
    assert [call.name for call in completion.messages[0].tool_calls] == ["look", "rm"]
    if ending.word and ending.reason in {"blocked", "unknown"}:
        assert completion.withheld_calls[0].word == ending.word
        assert ending.word in completion.withheld_calls[0].explanation


@EACH_CUT
@HOW
@each("last", [LAST, NOTHING], ids=["parses", "empty"])
def test_only_the_last_call_of_a_cut_answer_is_withheld_even_if_it_parses(
    ending: Ending, write: Write, last: ir.ToolCall
) -> None:
    completion = read(write(ending, FIRST, last), ending, write)
    assert names(completion) == ["look"]
    assert withheld(completion) == [("rm", "cut")]


def test_a_call_that_text_follows_is_whole_in_a_cut_answer() -> None:
    message = ir.Message("assistant", (LAST, ir.Text("And now I will tell you how")))
    completion = ir.Completion((message,), ir.Finish("length"))
    assert (names(completion), completion.withheld_calls) == (["rm"], ())
    empty = ir.Completion((ir.Message("assistant", (LAST, ir.Text(""))),), ir.Finish("length"))
    assert withheld(empty) == [("rm", "cut")]  # Gemini ends every stream with an empty text


@each("finish", [None, ir.Finish("stop"), ir.Finish("tool_calls"), ir.Finish("pause")])
def test_an_answer_that_nothing_calls_blocked_or_cut_offers_its_calls(finish: ir.Finish | None) -> None:
    completion = ir.Completion((ir.Message("assistant", (FIRST, LAST)),), finish)
    assert (names(completion), completion.withheld_calls) == (["look", "rm"], ())


@each("target", [name for name in FORMATS if name != "openai-chat"])
@each("arguments", ['{"path": "/', "rm it"])
def test_a_call_that_is_not_whole_is_no_success_without_a_finish_reason(target: str, arguments: str) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "rm", "arguments": arguments}}
    body = chat_answer({"content": None, "tool_calls": [call]}, None)
    there = dragoman.translate_response(body, source="openai-chat", target=target)
    completion = dragoman.decode_response(there.body, target)
    assert completion.finish is not None
    assert (completion.finish.reason, names(completion)) == ("length", [])


@each("source", FORMATS)
def test_a_stream_offers_no_call_before_its_end(source: str) -> None:
    encoder = dragoman.StreamEncoder(source)
    data = encoder.encode(events(FIRST)) + encoder.close()
    translator = dragoman.StreamTranslator(source=source, target="openai-chat")
    for start in range(0, len(data), 16):
        if translator.completion.finish is not None:
            break
        assert names(translator.completion) == []
        translator.feed(data[start : start + 16])
    translator.close()
    assert names(translator.completion) == ["look"]


# ── chunks, drivers and agents agree ──────────────────────────────────────────────────────────────────────────


@EACH
def test_chunks_have_no_call_that_must_not_be_run(ending: Ending) -> None:
    reader = ChunkReader(ending.source)
    chunks = reader.feed(streamed(ending, FIRST, LAST)) + reader.close()
    called = [chunk["content"]["name"] for chunk in chunks if chunk["type"] == "tool_call"]
    assert called == (["look"] if ending.reason == "cut" else [])
    assert "".join(chunk["content"] for chunk in chunks if chunk["type"] == "text") == "I will."


def tools_that_note(ran: list[str]) -> list[Any]:
    @tool
    def look(p: str) -> str:
        """Look."""
        ran.append("look")
        return p

    @tool
    def rm(p: str = "/") -> str:
        """Remove."""
        ran.append("rm")
        return p

    return [look, rm]


def driver_on(ending: Ending, *bodies: bytes) -> tuple[Any, ReplayTransport]:
    transport = ReplayTransport([Replayed(chunks=[body]) for body in bodies])
    options: dict[str, Any] = {"transport": transport, "environment": {}}
    if ending.source != "ollama-chat":
        options["api_key"] = "sk-test-1234567890abcdef"
    if ending.source == "bedrock-converse":
        options["region"] = "us-east-1"
    return dragoman.connect(PROVIDERS[ending.source], **options), transport


@EACH
@HOW
def test_a_result_offers_what_the_completion_offers(ending: Ending, write: Write) -> None:
    async def ask() -> Any:
        driver, _ = driver_on(ending, write(ending, FIRST, LAST))
        if write is whole:
            return await driver.query("go", errors="result")
        return await driver.stream_query("go", errors="result").result

    result = asyncio.run(ask())
    assert [call.name for call in result.tool_calls or ()] == (["look"] if ending.reason == "cut" else [])
    assert [one.call.name for one in result.withheld_calls] == (["rm"] if ending.reason == "cut" else ["look", "rm"])
    assert result.finish_reason != "tool_calls" or ending.reason == "cut"


@promise("agent:withheld-calls")
@EACH
@HOW
def test_an_agent_runs_no_call_that_must_not_be_run(ending: Ending, write: Write) -> None:
    ran: list[str] = []
    after = ir.Completion((ir.Message("assistant", "Done."),), ir.Finish("stop"), ir.Usage(1, 1), "a2", "m", 1)
    encoder = dragoman.StreamEncoder(ending.source)
    events: list[ir.AnyEvent] = [
        ir.StreamStart("a2", "m", 1),
        ir.PartStart(0, ir.Text("Done.")),
        ir.PartEnd(0),
        ir.UsageUpdate(ir.Usage(1, 1)),
        ir.Finished(ir.Finish("stop")),
    ]
    done = dragoman.encode_response(after, ending.source).json() if write is whole else encoder.encode(events)

    async def run() -> tuple[Agent, Any]:
        driver, transport = driver_on(ending, write(ending, FIRST, LAST), done + encoder.close())
        agent = Agent(driver, tools=tools_that_note(ran), deltas=write is streamed, output_cache=None)
        try:
            result = await agent.run("go")
        except ProviderError:
            assert ending.reason == "failed"
            result = None
        check_next_request(agent, ending)
        return agent, (result, transport)

    agent, (result, transport) = asyncio.run(run())
    assert ran == (["look"] if ending.reason == "cut" else [])
    if ending.reason == "cut":
        assert (result.reason, result.text, len(transport.requests)) == ("answer", "Done.", 2)
        (cut,) = [one for message in agent.history for one in message.tool_results if one.name == "rm"]
        assert cut.is_error
        assert "cut off" in cut.value
    elif result is not None:
        assert (result.reason, result.text, len(transport.requests)) == ("blocked", "I will.", 1)
        results = [one for message in agent.history for one in message.tool_results]
        assert [(one.name, one.is_error) for one in results] == [("look", True), ("rm", True)]


def check_next_request(agent: Agent, ending: Ending) -> None:
    """The history is one that the provider takes, and every other as well."""
    question = ir.Message("user", "and now?")
    for target in FORMATS:
        declared = [one.definition for one in agent.tools]
        request = ir.Request(MODELS[target], (*agent.history, question), tuple(declared), max_output_tokens=64)
        encoded = dragoman.encode_request(request, target)
        assert refusals(encoded, target, model=MODELS[target]) == (), (ending, target)


@promise("agent:withheld-calls")
def test_an_agent_with_failures_as_results_runs_no_call_of_a_failed_answer() -> None:
    ran: list[str] = []
    failed = ir.Completion((ir.Message("assistant", (LAST,)),), ir.Finish("error", "MALFORMED_FUNCTION_CALL"))
    agent = Agent(ScriptedDriver([failed]), tools=tools_that_note(ran), settings={"errors": "result"})
    result = asyncio.run(agent.run("go"))
    assert (ran, result.reason) == ([], "blocked")
    assert (
        result.text == "The calls of this answer were not run: the answer ended in an error (MALFORMED_FUNCTION_CALL)."
    )


@promise("agent:withheld-calls")
def test_a_blocked_answer_reports_its_steps_as_errors_and_asks_for_no_permission() -> None:
    questions: list[str] = []
    blocked = ir.Completion((ir.Message("assistant", (LAST,)),), ir.Finish("content_filter", "SAFETY"))

    def permit(request: Any) -> Any:
        questions.append(request.call.name)

    agent = Agent(ScriptedDriver([blocked]), tools=tools_that_note([]), permissions=permit)

    async def events_of() -> list[Any]:
        return [event async for event in agent.run_stream("go")]

    story = asyncio.run(events_of())
    assert [event.type for event in story] == ["step_start", "tool_call", "tool_result", "step_complete", "final"]
    assert story[2].is_error
    assert story[2].result == "This call was not run: the provider blocked the answer (SAFETY)."
    assert questions == []


# ── in another format ─────────────────────────────────────────────────────────────────────────────────────────


@EACH
@each("target", FORMATS)
def test_a_client_of_another_format_is_offered_no_more_than_the_answer_offers(ending: Ending, target: str) -> None:
    body = whole(ending, FIRST, LAST)
    offered = names(dragoman.decode_response(body, ending.source))
    there = dragoman.translate_response(body, source=ending.source, target=target)
    again = dragoman.decode_response(there.json(), target)
    assert names(again) == offered
    lost = [loss for loss in there.losses if loss.severity == "dropped" and "call" in loss.what]
    assert len(again.withheld_calls) + len(lost) == 2 - len(offered)


@EACH
@each("target", FORMATS)
def test_a_client_of_another_stream_is_offered_no_more_than_the_answer_offers(ending: Ending, target: str) -> None:
    data = streamed(ending, FIRST, LAST)
    offered = names(read(data, ending, streamed))
    translator = dragoman.StreamTranslator(source=ending.source, target=target)
    out = translator.feed(data) + translator.close()
    decoder = dragoman.StreamDecoder(target)
    try:
        again = dragoman.accumulate([*decoder.feed(out), *decoder.close()])
    except StreamError as error:
        again = error.partial
    assert names(again) == offered
