"""A program that calls tools itself, on any provider: only what `from dragoman import …` offers, in strict typing."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never

import dragoman
from dragoman import (
    AnyPart,
    Audio,
    Completion,
    ContentBlock,
    Document,
    Image,
    InvalidValue,
    Message,
    Opaque,
    PlainToolCall,
    Reasoning,
    Refusal,
    Request,
    SearchResult,
    ServerToolCall,
    ServerToolResult,
    Signature,
    Text,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    Usage,
)

WEATHER = ToolDefinition(
    "get_weather",
    "The weather in a city",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def get_weather(arguments: Mapping[str, Any]) -> str:
    return f"18° in {arguments['city']}"


TOOLS: dict[str, Callable[[Mapping[str, Any]], str]] = {"get_weather": get_weather}


def ask(question: str, picture: bytes) -> Request:
    return Request(
        "any-model",
        [
            Message.system("Answer briefly."),
            Message.user(question, Image.from_bytes(picture, "image/png")),
            {"role": "user", "content": "Take your time."},
        ],
        tools=[WEATHER],
        tool_choice="auto",
        max_output_tokens=200,
        stop=["END"],
    )


def run(call: ToolCall) -> ToolResult:
    tool = TOOLS.get(call.name)
    if tool is None:
        return ToolResult.error(call, f"there is no tool {call.name}")
    if not call.parsed:
        return ToolResult.error(call.id, call.name, "the arguments are not a JSON object")
    return ToolResult.text(call, tool(call.arguments))


def answer(request: Request, completion: Completion) -> Request:
    """The request that hands the results back."""
    results: list[ToolResult] = [run(call) for call in completion.tool_calls]
    turns: list[Message] = [
        *request.messages,
        Message.assistant(completion.text, tool_calls=completion.tool_calls),
        Message.tool(results),
    ]
    return Request(request.model, turns, request.tools, ToolChoice.of({"name": "get_weather"}))


def shown(part: AnyPart) -> str:
    """Every kind of part: a new one fails the type check here."""
    match part:
        case Text(text) | Reasoning(text) | Refusal(text):
            return text
        case Image() | Document() | Audio():
            return part.url or part.media_type or "media"
        case ToolCall():
            return f"{part.name}({part.arguments})"
        case ToolResult():
            return blocks(part.parts) if part.kind == "multimodal" else str(part.value)
        case ServerToolCall() | ServerToolResult():
            return part.name
        case SearchResult():
            return part.title
        case Opaque():
            return part.kind
        case _:
            assert_never(part)


def blocks(parts: Sequence[ContentBlock]) -> str:
    return ", ".join(shown(part) for part in parts)


def results_of_every_kind(call: ToolCall) -> list[ToolResult]:
    return [
        ToolResult.text(call, "18°"),
        ToolResult.data(call, {"temp": 18}),
        ToolResult.data("call_1", "get_weather", [1, 2]),
        ToolResult.error(call, "timeout"),
        ToolResult.multimodal(call, ["a map", Image(url="https://example.org/map.png")]),
        ToolResult(call.id, call.name, "multimodal", [Text("a map"), Image(url="https://example.org/map.png")]),
    ]


def records(completion: Completion) -> list[PlainToolCall]:
    return [call.plain() for call in completion.tool_calls]


def signed_by_gemini() -> ToolCall:
    """As a call is stored with what Gemini has signed."""
    return ToolCall("call_2", "get_weather", {"city": "Kyoto"}, metadata={"thoughtSignature": "c2ln"})


def usage_line(usage: Usage | None) -> str:
    return "unknown" if usage is None else f"{usage.input} in, {usage.output} out"


def is_refused() -> bool:
    try:
        ToolCall("call_1", "get.weather", {"temp": float("nan")})
    except InvalidValue as problem:
        return "ToolCall.arguments" in problem.path and bool(problem.expected) and bool(problem.found)
    return False


def main() -> dict[str, str]:
    """Ask in the format of one provider, answer as another would, and go on at a third."""
    request = ask("What should I pack for Tokyo?", b"\x89PNG")
    sent = dragoman.encode_request(request, "openai-chat")
    call = ToolCall("call_1", "get_weather", {"city": "Tokyo"}, signature=Signature("google", "c2ln"))
    completion = Completion([Message.assistant("Let me look.", call)], usage=Usage(12, 3))
    following = answer(request, completion)
    return {
        "sent": sent.json().decode(),
        "losses": dragoman.render_losses(dragoman.encode_request(following, "anthropic-messages").losses),
        "said": " ".join(shown(part) for message in following.messages for part in message.parts),
        "results": " ".join(shown(result) for result in results_of_every_kind(call)),
        "record": str(records(completion)),
        "again": str(ToolCall.from_plain(call.plain()) == call),
        "signed": str(signed_by_gemini().signature == Signature("google", "c2ln")),
        "usage": usage_line(completion.usage),
        "refused": str(is_refused()),
    }


if __name__ == "__main__":
    for title, text in main().items():
        print(f"{title}: {text}")
