"""The conversation service: which models are asked, what each sees, and what is stored."""

import asyncio
from typing import Any

import pytest

from dragoman.agent import FinalEvent, TextDeltaEvent, ToolCallEvent, ToolResultEvent
from dragoman.chat.entries import Conversation, read_conversation, to_document
from dragoman.chat.events import (
    Activity,
    AnswerEnded,
    AnswerStarted,
    Notice,
    PermissionAsked,
    PermissionSettled,
    Said,
    TurnEnded,
)
from dragoman.chat.media import attachment
from dragoman.chat.mentions import resolve_mentions, unknown_mention
from dragoman.chat.participants import configured_models, participant
from dragoman.chat.service import Busy, ChatService, Options
from dragoman.drivers import Scripted
from dragoman.drivers.scripted import Line
from dragoman.errors import NotConfigured
from dragoman.ir import Document, Failure, Image, Message, Refusal, Request, Usage
from tests.support.chats import chat_of, driver_of, model, note, of_kind, sent_to, stored_entries, talk, weather
from tests.support.promises import promise

NAMES = ("gemini", "chatgpt", "claude")


@promise("chat:mention")
@pytest.mark.parametrize(
    ("text", "models"),
    [
        ("@gemini hello", ("gemini",)),
        ("  @Claude hello", ("claude",)),
        ("@all hello", NAMES),
        ("@all", NAMES),
        ("@all, hello", NAMES),
        ("@claude: hello", ("claude",)),
        ("@claude. Hello", ("claude",)),
        ("@gemini　こんにちは", ("gemini",)),
        ("@geminiこんにちは", ("gemini",)),
        ("@claude @gemini both", ("gemini", "claude")),
        ("@claude\nnext line", ("claude",)),
        ("@allies are text", ()),
        ("@gemini-pro is another", ()),
        ("hello @gemini", ()),
        ("mail me@all", ()),
        ("@nobody hello", ()),
        ("@ gemini", ()),
        ("", ()),
    ],
)
def test_a_message_goes_to_whom_it_names_at_its_start(text: str, models: tuple[str, ...]) -> None:
    assert resolve_mentions(text, NAMES) == models


@promise("chat:mention")
def test_any_configured_name_is_a_mention() -> None:
    service = chat_of(model("my.model-2", ["yes"]))
    talk(service, "@my.model-2 hello")
    assert stored_entries(service)[-1] == ("my.model-2", "yes", "ok")
    assert list(configured_models([], {"CHAT_MODEL_LOCAL": "local/small"})) == [
        "gemini",
        "chatgpt",
        "claude",
        "ollama",
        "local",
    ]
    with pytest.raises(ValueError, match="is not a valid name for a model"):
        participant("all", "x/y")
    with pytest.raises(ValueError, match="two models are named 'Claude'"):
        configured_models(["claude", "Claude=x/y"], {})
    with pytest.raises(ValueError, match="write name=provider/model"):
        configured_models(["nobody"], {})


@promise("chat:mention")
def test_a_model_that_is_installed_answers_to_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.chat.participants.find_spec", lambda _: object())
    monkeypatch.setattr("dragoman.local.models.installed_models", lambda: ["smollm2"])
    assert configured_models([], {})["local"] == "local/smollm2"
    assert configured_models(["local"], {"CHAT_MODEL_LOCAL": "local/my.gguf"}) == {"local": "local/my.gguf"}
    monkeypatch.setattr("dragoman.chat.participants.find_spec", lambda _: None)
    assert "local" not in configured_models([], {})


@promise("chat:mention")
def test_an_unknown_name_is_reported() -> None:
    assert unknown_mention("@gemni hello", NAMES) == "gemni"
    assert unknown_mention("@allies are text", NAMES) == "allies"
    assert unknown_mention("@all hello", NAMES) is None
    assert unknown_mention("hello @gemni", NAMES) is None


@promise("chat:mention-kept")
def test_models_read_the_mention_too_and_so_know_what_was_meant_for_others() -> None:
    """Without it, a model would take a question to another for one to itself."""
    service = chat_of(model("gemini", ["I am Gemini.", "Yes."]), model("claude", ["I am Claude.", "Bye."]))
    talk(service, "@gemini who are you?", "@claude and you?", "@all thanks")
    assert [text for role, text in sent_to(service, "gemini") if role == "user"] == [
        "@gemini who are you?",
        "@claude and you?",
        "@all thanks",
    ]


@promise("chat:memo")
def test_a_memo_is_stored_not_sent_and_seen_later() -> None:
    service = chat_of(model("gemini", ["seen"]))
    events = talk(service, "remember the milk")
    assert [type(event) for event in events] == [Said, TurnEnded]
    assert driver_of(service, "gemini").requests == []
    talk(service, "@gemini what did I say?")
    assert sent_to(service, "gemini") == [("user", "remember the milk"), ("user", "@gemini what did I say?")]


@promise("chat:memo")
def test_a_default_model_may_answer_instead() -> None:
    service = chat_of(model("gemini", ["a"]), model("claude", ["b", "c"]), options=Options(default=("claude",)))
    talk(service, "hello")
    assert stored_entries(service) == [("user", "hello", "ok"), ("claude", "b", "ok")]
    service.configure(default=("all",))
    talk(service, "hello all")
    assert {entry.role for entry in service.conversation.entries[2:]} == {"user", "gemini", "claude"}


@promise("chat:all")
def test_all_are_asked_at_once_and_from_the_same_snapshot() -> None:
    """Each waits for the other to have been asked: one after the other, they would wait for ever."""
    arrived = {"gemini": asyncio.Event(), "claude": asyncio.Event()}

    def script(own: str, other: str) -> Any:
        async def answer(_: Request) -> str:
            arrived[own].set()
            await arrived[other].wait()
            return f"{own} here"

        return answer

    service = chat_of(model("gemini", script("gemini", "claude")), model("claude", script("claude", "gemini")))
    talk(service, "@all hello")
    assert sent_to(service, "gemini") == sent_to(service, "claude") == [("user", "@all hello")]
    assert stored_entries(service)[1:] == [("gemini", "gemini here", "ok"), ("claude", "claude here", "ok")]


@promise("chat:all")
def test_answers_are_stored_in_the_order_of_the_models_not_of_arrival() -> None:
    service = chat_of(model("slow", [Scripted(text="late", delay=0.05)] * 2), model("quick", ["early"] * 2))
    talk(service, "@all one", "@all two")
    assert [entry.role for entry in service.conversation.entries] == ["user", "slow", "quick"] * 2


@promise("chat:all-failure")
def test_a_model_that_fails_does_not_stop_the_others() -> None:
    broken = Scripted(text="Half an ans", failure=Failure("overloaded", "too busy"))
    service = chat_of(model("gemini", [broken]), model("claude", ["fine"]))
    talk(service, "@all hello")
    assert stored_entries(service)[1:] == [("gemini", "Half an ans", "error"), ("claude", "fine", "ok")]
    assert "too busy" in service.conversation.entries[1].error


@promise("chat:all-failure")
def test_a_model_without_a_key_says_so_and_the_others_answer() -> None:
    def no_key() -> Any:
        raise NotConfigured("openai has no api_key: set OPENAI_API_KEY", missing="api_key")

    keyless = participant("chatgpt", "openai/gpt-5.6")
    keyless = type(keyless)(name="chatgpt", model="openai/gpt-5.6", connect=no_key, window=1000)
    service = chat_of(keyless, model("claude", ["fine"]))
    words = "no key for openai: run `dragoman keys set openai`, or set OPENAI_API_KEY"
    assert service.unready() == {"chatgpt": words}
    talk(service, "@all hello")
    assert [entry.status for entry in service.conversation.entries] == ["ok", "error", "ok"]
    assert service.conversation.entries[1].error == words


@promise("chat:views")
def test_each_model_sees_the_user_and_itself() -> None:
    service = chat_of(model("gemini", ["I am Gemini.", "Again."]), model("claude", ["I am Claude."]))
    talk(service, "@gemini who are you?", "@claude and you?", "@gemini still there?")
    assert sent_to(service, "gemini") == [
        ("user", "@gemini who are you?"),
        ("assistant", "I am Gemini."),
        ("user", "@claude and you?"),
        ("user", "@gemini still there?"),
    ]


@promise("chat:share")
def test_answers_of_others_are_shared_where_asked_for_with_their_names() -> None:
    service = chat_of(model("gemini", ["Blue."]), model("claude", ["Red."]), options=Options(share=True))
    talk(service, "@gemini colour?", "@claude colour?")
    assert sent_to(service, "claude") == [
        ("user", "@gemini colour?"),
        ("user", "[gemini said]\nBlue."),
        ("user", "@claude colour?"),
    ]


@promise("chat:tools-owned")
def test_tool_entries_belong_to_their_model_even_where_ids_are_the_same() -> None:
    call = Scripted(calls=[("weather", {"city": "Oslo"})])
    service = chat_of(model("gemini", [call, "A", "A2"]), model("claude", [call, "B", "B2"]), tools=[weather])
    talk(service, "@all weather?", "@all thanks")
    expected = [("user", "@all weather?"), ("assistant", "call weather"), ("tool", "result weather")]
    for name, answer in (("gemini", "A"), ("claude", "B")):
        assert sent_to(service, name) == [*expected, ("assistant", answer), ("user", "@all thanks")]
    tools = [entry for entry in service.conversation.entries if entry.role == "tool"]
    assert [entry.owner for entry in tools] == ["gemini", "claude"]


@promise("chat:events")
def test_text_reasoning_and_tools_are_streamed_as_the_events_of_the_agent() -> None:
    script: list[Line] = [
        Scripted(reasoning="Hm.", text="Let me see.", calls=[("weather", {"city": "Rome"})]),
        "It is sunny.",
    ]
    service = chat_of(model("gemini", script), tools=[weather])
    events = talk(service, "@gemini weather in Rome?")
    inner = [event.event for event in of_kind(events, Activity)]
    assert "".join(event.content for event in of_kind(inner, TextDeltaEvent)) == "Let me see.It is sunny."
    assert [event.args for event in of_kind(inner, ToolCallEvent)] == [{"city": "Rome"}]
    assert [event.result for event in of_kind(inner, ToolResultEvent)] == ["sunny in Rome"]
    assert [event.content for event in of_kind(inner, FinalEvent)] == ["It is sunny."]
    parts = [[part["type"] for part in entry.content] for entry in service.conversation.entries]
    assert parts == [["text"], ["reasoning", "text", "tool_call"], ["tool_result"], ["text"]]
    assert [type(event) for event in events if not isinstance(event, Activity)] == [
        Said,
        AnswerStarted,
        AnswerEnded,
        TurnEnded,
    ]


@promise("chat:permissions")
@pytest.mark.parametrize(("allow", "result"), [(True, "noted: x"), (False, "the user declined")])
def test_tools_that_change_something_are_asked_about(allow: bool, result: str) -> None:  # noqa: FBT001
    service = chat_of(model("gemini", [Scripted(calls=[("note", {"text": "x"})]), "Done."]), tools=[note])
    settled: list[PermissionSettled] = []

    def answer(event: Any) -> None:
        if isinstance(event, PermissionAsked):
            assert (event.model, event.tool, event.arguments) == ("gemini", "note", {"text": "x"})
            assert service.open_questions == (event,)
            assert service.permit(event.id, allow=allow)
            assert not service.permit(event.id, allow=True)
        if isinstance(event, PermissionSettled):
            settled.append(event)

    with service.watch(answer):
        talk(service, "@gemini note x")
    (entry,) = [entry for entry in service.conversation.entries if entry.role == "tool"]
    assert result in entry.content[0]["content"]
    assert [event.allowed for event in settled] == [allow]
    assert service.open_questions == ()


@promise("chat:permissions")
def test_what_is_always_allowed_is_not_asked_again() -> None:
    script: list[Line] = [Scripted(calls=[("note", {"text": "x"})]), Scripted(calls=[("note", {"text": "y"})]), "Done."]
    service = chat_of(model("gemini", script), tools=[note])
    questions: list[PermissionAsked] = []

    def answer(event: Any) -> None:
        if isinstance(event, PermissionAsked):
            questions.append(event)
            service.permit(event.id, allow=True, always=True)

    with service.watch(answer):
        talk(service, "@gemini note both")
    assert len(questions) == 1


@promise("chat:permissions")
def test_always_allow_also_answers_pending_questions() -> None:
    call = Scripted(calls=[("note", {"text": "x"})])
    service = chat_of(model("gemini", [call, "Done."]), model("claude", [call, "Done."]), tools=[note])

    def answer(_: Any) -> None:
        if len(service.open_questions) == 2:
            service.permit(service.open_questions[0].id, allow=True, always=True)

    with service.watch(answer):
        talk(service, "@all note x")
    results = [entry.content[0]["content"] for entry in service.conversation.entries if entry.role == "tool"]
    assert results == ["noted: x", "noted: x"]
    assert service.open_questions == ()


@promise("chat:failures-stored")
@pytest.mark.parametrize(
    ("line", "status", "text"),
    [
        (Scripted(text="Partial", failure=Failure("server", "it broke")), "error", "Partial"),
        (Scripted(failure=Failure("rate_limit", "slow down")), "error", ""),
        (Scripted(), "empty", ""),
        (Scripted(text="   "), "empty", "   "),
        (Message("assistant", (Refusal("I will not."),)), "refused", "I will not."),
        (Scripted(text="Some", finish_reason="content_filter"), "refused", "Some"),
        (Scripted(text="Long", finish_reason="length"), "cut", "Long"),
    ],
)
def test_errors_refusals_and_empty_answers_are_reported_and_stored(line: Any, status: str, text: str) -> None:
    service = chat_of(model("gemini", [line]))
    events = talk(service, "@gemini hello")
    (ended,) = of_kind(events, AnswerEnded)
    entry = service.conversation.entries[-1]
    assert (ended.status, entry.status, entry.text) == (status, status, text)
    assert ended.error == entry.error != ""
    again = read_conversation(to_document(service.conversation))
    assert (again.entries[-1].status, again.entries[-1].error) == (status, entry.error)


@promise("chat:partial")
def test_partial_text_is_kept_marked_and_sent_to_the_model_as_interrupted() -> None:
    broken = Scripted(text="The answer is", failure=Failure("server", "it broke"))
    service = chat_of(model("gemini", [broken, "42."]))
    talk(service, "@gemini question", "@gemini go on")
    role, text = sent_to(service, "gemini")[1]
    assert role == "assistant"
    assert text.startswith("The answer is")
    assert "broke off" in text


@promise("chat:partial")
def test_finished_calls_of_a_failed_answer_are_kept() -> None:
    script: list[Line] = [
        Scripted(calls=[("weather", {"city": "Oslo"})]),
        Scripted(failure=Failure("server", "it broke")),
        "Yes.",
    ]
    service = chat_of(model("gemini", script), tools=[weather])
    talk(service, "@gemini weather?", "@gemini again")
    assert [entry.role for entry in service.conversation.entries[:4]] == ["user", "gemini", "tool", "gemini"]
    assert ("tool", "result weather") in sent_to(service, "gemini")


@promise("chat:stop")
def test_stopping_keeps_what_has_come_and_the_next_question_works() -> None:
    service = chat_of(model("gemini", ["one two three four", "fine"]), model("claude", ["unhurt " * 20]))
    stopped: list[str] = []

    def stop_early(event: Any) -> None:
        if isinstance(event, Activity) and event.model == "gemini" and not stopped:
            stopped.append(event.answer)
            service.stop(event.answer)

    with service.watch(stop_early):
        talk(service, "@all go")
    entries = service.conversation.entries
    assert [(entry.role, entry.status) for entry in entries] == [
        ("user", "ok"),
        ("gemini", "stopped"),
        ("claude", "ok"),
    ]
    assert entries[1].text.startswith("one")
    talk(service, "@gemini again")
    assert stored_entries(service)[-1] == ("gemini", "fine", "ok")


@promise("chat:stop")
def test_cancelling_the_waiting_task_stops_the_answers() -> None:
    service = chat_of(model("gemini", [Scripted(text="never", delay=30)]))

    async def run() -> None:
        work = asyncio.create_task(service.send("@gemini go"))
        while not driver_of(service, "gemini").requests:  # noqa: ASYNC110 - a script cannot wait for a test
            await asyncio.sleep(0.001)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(run())
    assert service.conversation.entries[-1].status == "stopped"
    assert not service.running


@promise("chat:busy")
def test_while_answers_are_under_way_nothing_else_is_sent() -> None:
    service = chat_of(model("gemini", [Scripted(text="slow", delay=0.05)]))

    async def run() -> None:
        turn = service.start("@gemini go")
        with pytest.raises(Busy, match="gemini is still answering: wait for it"):
            service.start("@gemini more")
        with pytest.raises(Busy):
            service.replace(Conversation())
        await service.wait(turn)

    asyncio.run(run())


@promise("chat:retry")
def test_an_answer_can_be_asked_for_again_from_the_same_snapshot_and_the_old_one_is_kept() -> None:
    service = chat_of(model("gemini", ["bad", "later", "good", "end"]), model("claude", ["other"]))
    talk(service, "@all first", "@gemini second")
    old = service.conversation.entries[1]

    async def again() -> None:
        await service.wait(service.retry(old.answer))

    asyncio.run(again())
    assert sent_to(service, "gemini") == [("user", "@all first")]
    kept = [(entry.role, entry.text, entry.replaced) for entry in service.conversation.entries]
    assert kept[:4] == [
        ("user", "@all first", False),
        ("gemini", "bad", True),
        ("gemini", "good", False),
        ("claude", "other", False),
    ]
    talk(service, "@gemini third")
    assert ("assistant", "bad") not in sent_to(service, "gemini")
    with pytest.raises(LookupError):
        service.retry("nonsense")


@promise("chat:attachments")
def test_pictures_and_files_reach_the_model_and_the_file() -> None:
    service = chat_of(model("gemini", ["I see."]))
    given = [attachment("a.png", "image/png", b"\x89PNG"), attachment("n.txt", "text/plain", "日本".encode())]
    asyncio.run(service.send("@gemini look", given))
    service = chat_of(model("gemini", ["Still."]), conversation=read_conversation(to_document(service.conversation)))
    talk(service, "@gemini again")
    first = driver_of(service, "gemini").requests[0].messages[0]
    assert [type(part).__name__ for part in first.parts] == ["Text", "Image", "Document"]
    image, document = first.parts[1:]
    assert isinstance(image, Image)
    assert image.data == "iVBORw=="
    assert isinstance(document, Document)
    assert (document.text, document.title) == ("日本", "n.txt")


@promise("chat:system-prompt")
def test_the_system_prompt_and_settings_of_a_conversation_are_sent() -> None:
    service = chat_of(model("gemini", ["ok"]), options=Options(settings={"temperature": 0.5}))
    service.change(system_prompt="Be brief.")
    talk(service, "@gemini hello")
    request = driver_of(service, "gemini").requests[0]
    assert request.messages[0].text == "Be brief."
    assert request.temperature == 0.5


@promise("chat:tokens-reported")
def test_tokens_that_the_provider_reports_are_stored_with_the_answer() -> None:
    service = chat_of(model("gemini", [Scripted(text="hi", usage=Usage(12, 3))]))
    talk(service, "@gemini hello")
    usage = service.conversation.entries[-1].usage
    assert (usage["input"], usage["output"]) == (12, 3)


@promise("chat:model")
def test_another_model_can_take_over_a_name_and_all_are_closed_at_the_end() -> None:
    service = chat_of(model("gemini", ["one"]))
    first = driver_of(service, "gemini")
    talk(service, "@gemini hello")
    service.set_participant(model("gemini", ["two"]))
    talk(service, "@gemini hello")
    assert stored_entries(service)[-1] == ("gemini", "two", "ok")
    asyncio.run(service.close())
    assert [first.closed, driver_of(service, "gemini").closed] == [True, True]


def test_nothing_cannot_be_sent() -> None:
    service: ChatService = chat_of(model("gemini", []))
    with pytest.raises(ValueError, match="nothing to send"):
        service.start("")
    assert of_kind(talk(service), Notice) == []
