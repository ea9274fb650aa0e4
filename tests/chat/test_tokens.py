"""Tokens: counted well enough to be trusted, and a conversation that does not fit is made to, whole turns at a time."""

import pytest

from dragoman.chat.entries import Entry, read_entries
from dragoman.chat.events import Notice
from dragoman.chat.tokens import DoesNotFit, counter_of, estimate, fitted, room_in, turns_of, window_of
from dragoman.drivers import Scripted
from tests.support.chats import asked, chat_of, model, of_kind, talk, weather
from tests.support.promises import promise


@promise("chat:token-estimate")
@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        # What current tokenizers of several vendors make of it, with room to either side.
        ("The quick brown fox jumps over the lazy dog.", 9, 14),
        ("吾輩は猫である。名前はまだ無い。", 9, 18),
        ("東京の天気は晴れです。明日も晴れるでしょう。", 12, 24),
        ("인공지능 모델은 토큰을 사용합니다.", 9, 20),
        ("Привет, как дела сегодня?", 6, 14),
        ('{"city": "Paris", "days": 3}', 8, 18),
        ("def add(a: int, b: int) -> int:\n    return a + b\n", 15, 32),
        ("3.14159 2026-11-16 1234567890", 10, 20),
        ("🎉🎉🎉", 3, 12),
        ("", 0, 0),
    ],
)
def test_an_estimate_is_good_for_many_scripts(text: str, least: int, most: int) -> None:
    assert least <= estimate(text) <= most


@promise("chat:token-estimate")
def test_the_exact_tokenizer_counts_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Table:
        def encode(self, text: str, *, disallowed_special: tuple[str, ...]) -> list[str]:
            assert disallowed_special == ()
            return text.split()

    class Module:
        @staticmethod
        def get_encoding(name: str) -> Table:
            assert name == "o200k_base"
            return Table()

    counter_of.cache_clear()
    monkeypatch.setattr("dragoman.chat.tokens.import_module", lambda _: Module)
    counter = counter_of("openai/gpt-5.6")
    assert counter is not None
    assert counter("a b c") == 3
    assert counter_of("anthropic/claude-sonnet-5") is None
    counter_of.cache_clear()


@promise("chat:window")
def test_the_window_comes_from_the_environment_then_from_the_table() -> None:
    assert window_of("claude", "anthropic/claude-sonnet-5", {}) == 200_000
    assert window_of("my-model", "x/y", {"CHAT_CONTEXT_MY_MODEL": "1000", "CHAT_CONTEXT": "5"}) == 1000
    assert window_of("my-model", "x/y", {"CHAT_CONTEXT": "5000"}) == 5000
    assert window_of("my-model", "x/y", {"CHAT_CONTEXT": "nonsense"}) == 32_768


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
    whole = fitted(entries, fixed=10, window=10_000)
    assert (whole.entries, whole.dropped_turns) == (entries, 0)
    part = fitted(entries, fixed=10, window=180)
    assert 0 < part.dropped_turns < 5
    assert part.entries == entries[part.dropped_turns * 4 :]
    assert part.tokens <= room_in(180)


@promise("chat:prune")
def test_answers_of_all_models_belong_to_one_turn() -> None:
    entries = read_entries(
        [{"role": "user", "content": "@all"}, {"role": "gemini", "content": "a"}, {"role": "claude", "content": "b"}]
    )
    assert [len(turn) for turn in turns_of(entries)] == [3]


@promise("chat:prune")
def test_what_is_sent_is_pruned_and_told_while_the_conversation_stays_whole() -> None:
    call = Scripted(calls=[("weather", {"city": "Oslo"})])
    service = chat_of(model("gemini", [call, "Sun. " * 30, "Yes. " * 30, "Fine."], window=260), tools=[weather])
    service.change(system_prompt="Be brief.")
    events = talk(service, "@gemini weather?", "@gemini sure?", "@gemini really? " + "so " * 20)
    sent = asked(service, "gemini")
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
