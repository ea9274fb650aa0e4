"""Tokens: counted well enough to be trusted, and a conversation that does not fit is made to, whole turns at a time."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from dragoman.chat.entries import Conversation, Entry, read_conversation, read_entries, to_document
from dragoman.chat.events import Notice
from dragoman.chat.service import ChatService
from dragoman.chat.tokens import (
    DoesNotFit,
    Measure,
    Scale,
    Tables,
    calibrate,
    counter_of,
    estimate,
    room_for_prompt,
    turns_of,
    window_of,
)
from dragoman.drivers import Scripted
from dragoman.ir import Request, Usage
from tests.support.chats import chat_of, model, of_kind, sent_to, talk, weather
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

COUNTED: dict[str, Any] = json.loads((Path(__file__).parent / "fixtures" / "counted_tokens.json").read_bytes())
"""What tokenizers of OpenAI, Gemini and Qwen make of a text."""


@promise("chat:token-estimate")
@pytest.mark.parametrize("name", COUNTED)
def test_an_estimate_is_good_for_many_scripts(name: str) -> None:
    """Nearer to each tokenizer than these are to one another, or within a fifth of the nearest of them."""
    counts = COUNTED[name]["tokens"].values()
    assert 0.8 * min(counts) <= estimate(COUNTED[name]["text"]) <= 1.2 * max(counts)


@promise("chat:token-estimate")
def test_nothing_counts_nothing() -> None:
    assert estimate("") == 0
    assert estimate(" \n\t") == 0


class Table:
    def encode(self, text: str, *, disallowed_special: tuple[str, ...]) -> list[str]:
        assert disallowed_special == ()
        return text.split()


@promise("chat:token-estimate", "chat:token-lazy")
def test_the_models_tokenizer_counts_once_loaded_without_blocking(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = threading.Event()

    class Module:
        @staticmethod
        def get_encoding(name: str) -> Table:
            assert name == "o200k_base"
            fetched.wait(PATIENCE)  # a table that is not on this machine yet
            return Table()

    monkeypatch.setattr("dragoman.chat.tokens.import_module", lambda _: Module)
    tables = Tables()
    assert counter_of("openai/gpt-5.6", tables) is None  # at once
    fetched.set()
    tables.wait(PATIENCE)
    counter = counter_of("openai/gpt-5.6", tables)
    assert counter is not None
    assert counter("a b c") == 3
    assert counter_of("anthropic/claude-sonnet-5", tables) is None


@promise("chat:token-lazy")
def test_a_tokenizer_that_cannot_be_loaded_is_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise ImportError("no tiktoken here")

    monkeypatch.setattr("dragoman.chat.tokens.import_module", missing)
    tables = Tables()
    assert counter_of("openai/gpt-5.6", tables) is None
    tables.wait(PATIENCE)
    assert counter_of("openai/gpt-5.6", tables) is None


@promise("chat:token-reported")
def test_what_the_provider_reports_corrects_the_count_also_after_a_reload() -> None:
    """This one says that its tokenizer makes half as much again of everything, and adds words of its own."""

    def reported(request: Request) -> Scripted:
        sent = sum(estimate(message.text) + 4 for message in request.messages)
        return Scripted(text="word " * 300, usage=Usage(round(sent * 1.5) + 120, 300))

    service = chat_of(model("gemini", reported, window=100_000), model("claude", []))
    plain = service.gauges()[0]
    assert not plain.reported
    talk(service, "@gemini " + "hello " * 400)
    talk(service, "@gemini " + "again " * 400)
    usage = service.conversation.entries[-1].usage
    truth = usage["input"] + 1.5 * (300 + 4)  # that request, and the answer to it
    for one in (service, chat_of(*service.participants.values(), conversation=_reloaded(service))):
        gemini, claude = one.gauges()
        assert gemini.reported
        assert abs(gemini.used - truth) / truth < 0.02
        assert not claude.reported
    replaced = chat_of(model("gemini", [], model="other/model"), conversation=service.conversation)
    assert not replaced.gauges()[0].reported  # another model has another tokenizer


def _reloaded(service: ChatService) -> Conversation:
    return read_conversation(json.loads(json.dumps(to_document(service.conversation))))


@promise("chat:token-reported")
def test_a_small_request_says_what_is_added_and_not_how_words_are_counted() -> None:
    added = Entry(role="a", model="p/m", usage={"input": 500, "estimated": 40})
    assert calibrate([added], "a", "p/m") == Scale(1.0, 460, reported=True)
    wild = Entry(role="a", model="p/m", usage={"input": 10_000, "estimated": 1_000})
    scale = calibrate([wild], "a", "p/m")
    assert scale.of(1_000) == 10_000
    assert scale.of(2_000) == 11_600  # not twice as much
    assert calibrate([Entry(role="a", model="p/m", usage={"input": 5})], "a", "p/m") == Scale()


@promise("chat:token-reported", "chat:prune")
def test_pruning_goes_by_what_was_reported() -> None:
    entries = history(6)
    whole = Measure(window=1_000).fit_turns(entries)
    assert whole.dropped_turns == 0
    doubled = Measure(window=1_000, scale=Scale(1.0, 700, reported=True)).fit_turns(entries)
    assert doubled.dropped_turns > 0
    assert doubled.tokens == doubled.counted + 700 <= room_for_prompt(1_000)


@promise("chat:window")
def test_the_window_comes_from_the_environment_then_from_the_table() -> None:
    assert window_of("claude", "anthropic/claude-sonnet-5", {}) == 1_000_000
    assert window_of("my-model", "x/y", {"CHAT_CONTEXT_MY_MODEL": "1000", "CHAT_CONTEXT": "5"}) == 1000
    assert window_of("my-model", "x/y", {"CHAT_CONTEXT": "5000"}) == 5000
    assert window_of("my-model", "x/y", {"CHAT_CONTEXT": "nonsense"}) == 32_768
    assert window_of("local", "local/smollm2", {}) == 8_192
    assert window_of("local", "local/smollm2", {"DRAGOMAN_LOCAL_CONTEXT": "2048"}) == 2_048


def history(turns: int) -> tuple[Entry, ...]:
    raw = []
    for number in range(turns):
        raw += [
            {"role": "user", "content": f"@gemini question {number} " + "word " * 20},
            {
                "role": "gemini",
                "content": [
                    {"type": "tool_call", "content": {"name": "weather", "arguments": {}, "tool_call_id": f"c{number}"}}
                ],
            },
            {
                "role": "tool",
                "content": [{"type": "tool_result", "name": "weather", "content": "sun", "tool_call_id": f"c{number}"}],
            },
            {"role": "gemini", "content": f"answer {number}"},
        ]
    return read_entries(raw)


@promise("chat:prune")
def test_the_oldest_whole_turns_are_left_out_in_order_and_pairs_stay_together() -> None:
    entries = history(6)
    whole = Measure(fixed=10, window=10_000).fit_turns(entries)
    assert (whole.entries, whole.dropped_turns) == (entries, 0)
    part = Measure(fixed=10, window=180).fit_turns(entries)
    assert 0 < part.dropped_turns < 5
    assert part.entries == entries[part.dropped_turns * 4 :]
    assert part.tokens <= room_for_prompt(180)


@promise("chat:prune")
def test_answers_of_all_models_belong_to_one_turn() -> None:
    entries = read_entries(
        [{"role": "user", "content": "@all"}, {"role": "gemini", "content": "a"}, {"role": "claude", "content": "b"}]
    )
    assert [len(turn) for turn in turns_of(entries)] == [3]


@promise("chat:prune")
def test_the_request_is_pruned_and_reported_while_the_conversation_stays_whole() -> None:
    call = Scripted(calls=[("weather", {"city": "Oslo"})])
    service = chat_of(model("gemini", [call, "Sun. " * 30, "Yes. " * 30, "Fine."], window=260), tools=[weather])
    service.change(system_prompt="Be brief.")
    events = talk(service, "@gemini weather?", "@gemini sure?", "@gemini really? " + "so " * 20)
    sent = sent_to(service, "gemini")
    assert sent[0] == ("system", "Be brief.")
    assert "weather" not in " ".join(text for _, text in sent)
    assert sent[-1][1].startswith("@gemini really?")
    assert any("left out" in notice.text for notice in of_kind(events, Notice))
    assert len(service.conversation.entries) == 8


@promise("chat:does-not-fit")
def test_sending_is_refused_with_a_reason_when_nothing_is_left_to_prune() -> None:
    service = chat_of(model("gemini", ["ok"], window=100))
    with pytest.raises(DoesNotFit, match=r"gemini takes 100 tokens.*this message needs .*larger window"):
        talk(service, "@gemini " + "long " * 200)
    assert service.conversation.entries == ()


@promise("chat:does-not-fit")
def test_of_several_models_those_it_fits_answer() -> None:
    service = chat_of(model("small", [], window=100), model("large", ["ok"]))
    talk(service, "@all " + "long " * 200)
    statuses = [(entry.role, entry.status) for entry in service.conversation.entries]
    assert statuses == [("user", "ok"), ("small", "error"), ("large", "ok")]
    assert "takes 100 tokens" in service.conversation.entries[1].error


@promise("chat:gauge")
def test_the_gauge_counts_what_each_model_would_see() -> None:
    service = chat_of(model("gemini", ["word " * 100], window=1000), model("claude", [], window=2000), tools=[weather])
    talk(service, "@gemini hello")
    gemini, claude = service.gauges()
    assert gemini.used > claude.used + 90
    assert (gemini.window, claude.window, gemini.exact) == (1000, 2000, False)
    assert 0 < gemini.share < 1
    assert service.gauges("more " * 50)[0].used >= gemini.used + 50
