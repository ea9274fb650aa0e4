"""The vendors' own SDKs through the gateway to providers of all families: a tool loop, streamed and not."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import boto3  # type: ignore[import-untyped]
import cohere
import ollama
import pytest
from anthropic import Anthropic
from anthropic import NotFoundError as MissingError
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import ClientError  # type: ignore[import-untyped]
from google.genai import Client, types
from openai import NotFoundError, OpenAI

from tests.gateway.running import RunningGateway
from tests.sim.test_sim_pairs import ANSWER, FORMATS, MODELS, QUESTION, WEATHER
from tests.sim.wire import SCHEMA
from tests.support.promises import promise

FUNCTION: Any = {"name": "get_weather", "description": "Weather of a city", "parameters": SCHEMA}
ONCE = Config(retries={"total_max_attempts": 1})
TOOL: Any = {"type": "function", "function": FUNCTION}


@pytest.fixture(scope="module")
def clients(shared_gateway: RunningGateway) -> Iterator[dict[str, Any]]:
    """The clients, made once, because creating some of them takes longer than all their requests."""
    url = shared_gateway.url
    keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
    local = ollama.Client(host=url)
    command = cohere.ClientV2(api_key="any", base_url=url)
    with (
        OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0) as openai,
        Anthropic(base_url=url, api_key="any", max_retries=0) as anthropic,
        Client(api_key="any", http_options=types.HttpOptions(base_url=url)) as google,
        closing(boto3.client("bedrock-runtime", endpoint_url=url, config=ONCE, **keys)) as amazon,
        closing(local._client),  # noqa: SLF001 - the client has no other way to let go of its connections
    ):
        yield {
            "openai-chat": openai,
            "openai-responses": openai,
            "anthropic-messages": anthropic,
            "gemini": google,
            "gemini-interactions": google,
            "gemini-interactions, stateless": google,
            "ollama-chat": local,
            "bedrock-converse": amazon,
            "cohere-chat": command,
        }


def _chat(client: Any, model: str, *, streamed: bool) -> str:
    history: list[Any] = [{"role": "user", "content": QUESTION}]

    def ask() -> Any:
        if not streamed:
            return client.chat.completions.create(model=model, messages=history, tools=[TOOL]).choices[0].message
        with client.chat.completions.stream(model=model, messages=history, tools=[TOOL]) as stream:
            return stream.get_final_completion().choices[0].message

    message = ask()
    history.append(message.to_dict())
    for call in message.tool_calls:
        city = json.loads(call.function.arguments)["city"]
        history.append({"role": "tool", "tool_call_id": call.id, "content": WEATHER[city]})
    return str(ask().content)


def _responses(client: Any, model: str, *, streamed: bool) -> str:
    """Continue the conversation with the id of the previous response, whether or not the upstream stores responses."""

    def ask(**more: Any) -> Any:
        tools: Any = [{"type": "function", "strict": False, **FUNCTION}]
        if not streamed:
            return client.responses.create(model=model, tools=tools, **more)
        with client.responses.stream(model=model, tools=tools, **more) as stream:
            return stream.get_final_response()

    first = ask(input=QUESTION)
    outputs = [
        {
            "type": "function_call_output",
            "call_id": item.call_id,
            "output": WEATHER[json.loads(item.arguments)["city"]],
        }
        for item in first.output
        if item.type == "function_call"
    ]
    return str(ask(input=outputs, previous_response_id=first.id).output_text)


def _messages(client: Any, model: str, *, streamed: bool) -> str:
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    tools: Any = [{"name": "get_weather", "description": "Weather of a city", "input_schema": SCHEMA}]

    def ask() -> Any:
        if not streamed:
            return client.messages.create(model=model, max_tokens=2000, messages=history, tools=tools)
        with client.messages.stream(model=model, max_tokens=2000, messages=history, tools=tools) as stream:
            return stream.get_final_message()

    message = ask()
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": WEATHER[block.input["city"]]}
        for block in message.content
        if block.type == "tool_use"
    ]
    content = [block.model_dump(exclude_none=True, exclude={"parsed_output"}) for block in message.content]
    history.extend([{"role": "assistant", "content": content}, {"role": "user", "content": results}])
    return "".join(block.text for block in ask().content if block.type == "text")


def _gemini(client: Any, model: str, *, streamed: bool) -> str:
    declaration = types.FunctionDeclaration(name="get_weather", parameters_json_schema=SCHEMA)
    tools: Any = [types.Tool(function_declarations=[declaration])]
    by_hand = types.AutomaticFunctionCallingConfig(disable=True)
    config = types.GenerateContentConfig(tools=tools, automatic_function_calling=by_hand)
    history: list[Any] = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]

    def ask() -> Any:
        if not streamed:
            answer = client.models.generate_content(model=model, contents=history, config=config)
            return (answer.candidates or [])[0].content
        chunks = client.models.generate_content_stream(model=model, contents=history, config=config)
        contents = [chunk.candidates[0].content for chunk in chunks if chunk.candidates]
        parts = [part for content in contents if content for part in content.parts or []]
        return types.Content(role="model", parts=parts)

    content = ask()
    results = [
        types.Part(
            function_response=types.FunctionResponse(
                id=call.id, name=call.name, response={"output": WEATHER[call.args["city"]]}
            )
        )
        for call in (part.function_call for part in content.parts)
        if call
    ]
    history.extend([content, types.Content(role="user", parts=results)])
    return "".join(part.text or "" for part in ask().parts if not part.thought)


def _interactions(client: Any, model: str, *, streamed: bool) -> str:
    """Continue the conversation with the id of the previous interaction, whether or not the upstream stores them."""
    tools: Any = [{"type": "function", **FUNCTION}]

    def ask(**more: Any) -> Any:
        if not streamed:
            return client.interactions.create(model=model, tools=tools, **more)
        return _interaction_of(client.interactions.create(model=model, tools=tools, stream=True, **more))

    first = ask(input=QUESTION)
    results = [
        {"type": "function_result", "call_id": step.id, "name": step.name, "result": WEATHER[step.arguments["city"]]}
        for step in first.steps
        if step.type == "function_call"
    ]
    last = ask(input=results, previous_interaction_id=first.id)
    return "".join(part.text for step in last.steps if step.type == "model_output" for part in step.content)


def _stateless_interactions(client: Any, model: str, *, streamed: bool) -> str:
    """Store nothing, and send all steps again, including thoughts with their signatures."""
    tools: Any = [{"type": "function", **FUNCTION}]
    timeline: list[Any] = [{"type": "user_input", "content": [{"type": "text", "text": QUESTION}]}]

    def ask() -> Any:
        options: Any = {"model": model, "tools": tools, "input": timeline, "store": False}
        if not streamed:
            return client.interactions.create(**options)
        return _interaction_of(client.interactions.create(**options, stream=True))

    timeline.extend(_sent(step) for step in ask().steps)
    timeline.extend(
        {"type": "function_result", "call_id": step["id"], "name": step["name"], "result": _step_text(step)}
        for step in list(timeline)
        if step["type"] == "function_call"
    )
    return "".join(part.text for step in ask().steps if step.type == "model_output" for part in step.content)


def _sent(step: Any) -> Any:
    given = vars(step) if isinstance(step, SimpleNamespace) else step.model_dump(exclude_none=True)
    if given["type"] == "model_output":
        return {**given, "content": [{"type": "text", "text": part.text} for part in step.content]}
    return given


def _step_text(step: Any) -> str:
    return WEATHER[step["arguments"]["city"]]


def _interaction_of(events: Any) -> Any:
    """Assemble the interaction from a stream: steps come in pieces, and no event contains a whole one."""
    steps: dict[int, dict[str, Any]] = {}
    id = ""
    for event in events:
        kind = event.event_type
        if kind == "step.start":
            start = event.step.model_dump(exclude_none=True)
            steps[event.index] = {**start, "text": "", "pieces": ""}
        elif kind == "step.delta":
            delta = event.delta
            step = steps[event.index]
            if delta.type == "text":
                step["text"] += delta.text
            elif delta.type == "arguments_delta":
                step["pieces"] += delta.arguments
            elif delta.type == "thought_signature":
                step["signature"] = delta.signature
        elif kind == "interaction.completed":
            id = event.interaction.id
    return SimpleNamespace(id=id, steps=[_whole_step(steps[index]) for index in sorted(steps)])


def _whole_step(step: dict[str, Any]) -> Any:
    text, pieces = step.pop("text"), step.pop("pieces")
    if step["type"] == "function_call":
        return SimpleNamespace(**{**step, "arguments": json.loads(pieces or "{}")})
    if step["type"] == "model_output":
        return SimpleNamespace(type="model_output", content=[SimpleNamespace(type="text", text=text)])
    return SimpleNamespace(**step)


def _ollama(client: Any, model: str, *, streamed: bool) -> str:
    history: list[Any] = [{"role": "user", "content": QUESTION}]

    def ask() -> dict[str, Any]:
        if not streamed:
            answer = client.chat(model=model, messages=history, tools=[TOOL])
            return dict(answer.message.model_dump(exclude_none=True))
        whole: dict[str, Any] = {"role": "assistant", "content": "", "thinking": "", "tool_calls": []}
        for line in client.chat(model=model, messages=history, tools=[TOOL], stream=True):
            fields = line.message.model_dump(exclude_none=True)
            for name in ("content", "thinking", "tool_calls"):
                whole[name] += fields.get(name) or type(whole[name])()
        return whole

    message = ask()
    history.append(message)
    for call in message["tool_calls"]:
        city = call["function"]["arguments"]["city"]
        history.append({"role": "tool", "tool_name": "get_weather", "content": WEATHER[city]})
    return str(ask()["content"])


def _converse(client: Any, model: str, *, streamed: bool) -> str:
    spec = {"name": "get_weather", "description": "Weather", "inputSchema": {"json": SCHEMA}}
    tools: Any = {"tools": [{"toolSpec": spec}]}
    history: list[Any] = [{"role": "user", "content": [{"text": QUESTION}]}]

    def ask() -> Any:
        if not streamed:
            return client.converse(modelId=model, messages=history, toolConfig=tools)["output"]["message"]
        stream = client.converse_stream(modelId=model, messages=history, toolConfig=tools)["stream"]
        return _gathered(stream)

    message = ask()
    history.append(message)
    uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
    results = [
        {"toolResult": {"toolUseId": use["toolUseId"], "content": [{"text": WEATHER[use["input"]["city"]]}]}}
        for use in uses
    ]
    history.append({"role": "user", "content": results})
    return "".join(block.get("text", "") for block in ask()["content"])


def _gathered(stream: Any) -> Any:
    blocks: dict[int, Any] = {}
    for event in stream:
        if "contentBlockStart" in event:
            start = event["contentBlockStart"]
            blocks[start["contentBlockIndex"]] = {"toolUse": {**start["start"]["toolUse"], "input": ""}}
        elif "contentBlockDelta" in event:
            _extend(blocks, event["contentBlockDelta"])
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"] or "{}")
    return {"role": "assistant", "content": [blocks[index] for index in sorted(blocks)]}


def _extend(blocks: dict[int, Any], event: Any) -> None:
    index, delta = event["contentBlockIndex"], event["delta"]
    if "toolUse" in delta:
        blocks[index]["toolUse"]["input"] += delta["toolUse"]["input"]
    elif "text" in delta:
        blocks.setdefault(index, {"text": ""})["text"] += delta["text"]
    elif "reasoningContent" in delta:
        thought = blocks.setdefault(index, {"reasoningContent": {"reasoningText": {"text": ""}}})["reasoningContent"]
        for name, value in delta["reasoningContent"].items():
            if name == "redactedContent":
                thought.pop("reasoningText", None)
                thought[name] = thought.get(name, b"") + value
            else:
                thought["reasoningText"][name] = thought["reasoningText"].get(name, "") + value


def _cohere(client: Any, model: str, *, streamed: bool) -> str:
    history: list[Any] = [{"role": "user", "content": QUESTION}]

    def ask() -> Any:
        if not streamed:
            return client.chat(model=model, messages=history, tools=[TOOL]).message
        return _joined(client.chat_stream(model=model, messages=history, tools=[TOOL]))

    message = ask()
    history.append(message)
    for call in message.tool_calls:
        city = json.loads(call.function.arguments)["city"]
        history.append({"role": "tool", "tool_call_id": call.id, "content": WEATHER[city]})
    return "".join(block.text for block in ask().content if block.type == "text")


def _joined(stream: Any) -> Any:
    """Assemble the message of a stream as in the vendor's documentation: from its own objects, joined by index."""
    blocks: dict[int, Any] = {}
    calls: dict[int, Any] = {}
    plan = ""
    for event in stream:
        message: Any = getattr(getattr(event, "delta", None), "message", None)
        if event.type == "content-start":
            blocks[event.index] = {"type": message.content.type} | message.content.model_dump(exclude_none=True)
        elif event.type == "content-delta":
            for key, text in message.content.model_dump(exclude_none=True).items():
                blocks[event.index][key] = blocks[event.index].get(key, "") + text if isinstance(text, str) else text
        elif event.type == "tool-plan-delta":
            plan += message.tool_plan
        elif event.type == "tool-call-start":
            calls[event.index] = message.tool_calls
        elif event.type == "tool-call-delta":
            call, more = calls[event.index], message.tool_calls
            function = call.function.model_copy(update={"arguments": call.function.arguments + more.function.arguments})
            calls[event.index] = call.model_copy(update={"function": function, **(more.model_extra or {})})
    return cohere.AssistantMessageResponse(
        content=[_block(block) for block in blocks.values()] or None,
        tool_plan=plan or None,
        tool_calls=list(calls.values()) or None,
    )


def _block(fields: dict[str, Any]) -> Any:
    kind = {"text": cohere.TextAssistantMessageResponseContentItem}
    return kind.get(fields["type"], cohere.ThinkingAssistantMessageResponseContentItem)(**fields)


LOOPS: dict[str, Callable[..., str]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic-messages": _messages,
    "gemini": _gemini,
    "gemini-interactions": _interactions,
    "gemini-interactions, stateless": _stateless_interactions,
    "ollama-chat": _ollama,
    "bedrock-converse": _converse,
    "cohere-chat": _cohere,
}


@promise("gateway:sdks", "gateway:responses-state")
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("sdk", LOOPS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.usefixtures("gateway")
def test_a_tool_loop(clients: dict[str, Any], sdk: str, target: str, *, streamed: bool) -> None:
    assert LOOPS[sdk](clients[sdk], f"as-{target}/{MODELS[target]}", streamed=streamed) == ANSWER


# ── ids of requests, and unknown paths ──


@promise("gateway:sdks")
def test_ids_of_requests_are_where_sdks_look_for_them(clients: dict[str, Any]) -> None:
    """In answers of any provider, and in errors of the gateway itself."""
    openai, claude, amazon = clients["openai-chat"], clients["anthropic-messages"], clients["bedrock-converse"]
    hello: Any = [{"role": "user", "content": "hi"}]
    blocks: Any = [{"role": "user", "content": [{"text": "hi"}]}]
    for target in ("openai-chat", "anthropic-messages", "gemini", "bedrock-converse"):
        model = f"as-{target}/{MODELS[target]}"
        assert openai.chat.completions.create(model=model, messages=hello)._request_id  # noqa: SLF001 - documented
        assert claude.messages.create(model=model, max_tokens=99, messages=hello)._request_id  # noqa: SLF001
        with claude.messages.stream(model=model, max_tokens=99, messages=hello) as stream:
            assert stream.request_id
        assert amazon.converse(modelId=model, messages=blocks)["ResponseMetadata"]["RequestId"]
    with pytest.raises(NotFoundError) as refused:
        openai.chat.completions.create(model="unknown/x", messages=hello)
    assert refused.value.request_id
    with pytest.raises(MissingError) as missing:
        claude.messages.create(model="unknown/x", max_tokens=9, messages=hello)
    body: Any = missing.value.body
    assert missing.value.request_id == body["request_id"] != None  # noqa: E711 - three are compared
    with pytest.raises(ClientError) as invalid:
        amazon.converse(modelId="unknown/x", messages=blocks)
    assert invalid.value.response["ResponseMetadata"]["RequestId"]


@promise("gateway:sdks")
def test_unknown_paths_are_answered_in_the_format_of_the_client(clients: dict[str, Any]) -> None:
    with pytest.raises(MissingError) as missing:
        clients["anthropic-messages"].get("/v1/skills", cast_to=object)
    assert missing.value.type == "not_found_error"
    with pytest.raises(cohere.NotFoundError) as unknown:
        clients["cohere-chat"].tokenize(text="x", model="command-a-03-2025")
    assert "Unknown request URL" in unknown.value.body["message"]
    about = {
        "guardrailIdentifier": "x",
        "guardrailVersion": "1",
        "source": "INPUT",
        "content": [{"text": {"text": "x"}}],
    }
    with pytest.raises(ClientError, match="Unknown request URL"):
        clients["bedrock-converse"].apply_guardrail(**about)
