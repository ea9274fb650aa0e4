"""The page in a real browser, against simulated providers."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dragoman.chat.demo import TOOLS, simulated_models
from dragoman.chat.entries import Conversation, read_entries
from dragoman.chat.participants import Participant
from dragoman.chat.stores import FileStore
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.ir import Failure
from dragoman.web.conversation_hub import ConversationHub, HubSettings
from dragoman.web.serving import serving_page
from tests.support.browser import Page, picture, tab
from tests.support.chats import model
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

CLICK = "[...document.querySelectorAll('{}')].find((one) => one.textContent.startsWith('{}')).click()"
DONE = "document.querySelectorAll('.answer:not(.busy)').length === {}"
Browse = Callable[..., None]
Work = Callable[[Page, str], Coroutine[Any, Any, None]]


@pytest.fixture
def with_browser(address: str) -> Callable[..., None]:
    return partial(in_browser, address)


def in_browser(address: str, work: Work, folder: Path, *models: Participant) -> None:
    async def run() -> None:
        store = FileStore(folder)
        hub = ConversationHub(models, store, store.folder, settings=HubSettings(tools=TOOLS))
        async with asyncio.timeout(2 * PATIENCE), serving_page(hub) as url, tab(address) as page:
            await page.open(f"{url}/#/chat")
            await page.until("document.querySelector('.empty button')")
            await work(page, url)
            assert page.problems == []

    asyncio.run(run())


@promise("chat:web-browser", "chat:demo", "chat:web-resume")
def test_four_models_call_a_tool_side_by_side_also_after_a_reload(
    tmp_path: Path, with_browser: Callable[..., None]
) -> None:
    async def work(page: Page, url: str) -> None:
        del url
        await page.say("@all What is the weather in Paris?")
        await page.until(DONE.format(4))
        tops = await page.js("[...document.querySelectorAll('.answer')].map((one) => one.getBoundingClientRect().top)")
        assert len(set(tops)) == 1
        tools = (
            "[...document.querySelectorAll('.tool')].map((one) => one.dataset.tool + one.textContent.includes('18 °C'))"
        )
        assert await page.js(tools) == ["get_weathertrue"] * 4
        names = "[...document.querySelectorAll('.answer')].map((one) => one.dataset.model)"
        assert await page.js(names) == ["gemini", "chatgpt", "claude", "ollama"]
        await page.js("document.querySelectorAll('.tool').forEach((one) => (one.open = true))")
        before = await page.js("document.getElementById('timeline').textContent.replaceAll(/ \\(\\d.*?\\)/g, '')")
        await page.reload()
        await page.until(DONE.format(4))
        await page.js("document.querySelectorAll('.tool').forEach((one) => (one.open = true))")
        after = await page.js("document.getElementById('timeline').textContent")
        assert after.split() == before.split()

    with simulated_models() as models:
        with_browser(work, tmp_path, *models)


@promise("chat:web-browser", "chat:permissions", "chat:web-resume")
def test_a_permission_is_asked_survives_a_reload_and_is_given(
    tmp_path: Path, with_browser: Callable[..., None]
) -> None:
    async def work(page: Page, url: str) -> None:
        del url
        await page.say("@gemini note it")
        await page.until("document.querySelector('.ask')")
        assert await page.js("document.activeElement.closest('.ask') === null")
        await picture(page, "chat-permission")
        await page.reload()
        await page.until("document.querySelector('.ask')")
        assert "First." in await page.js("document.querySelector('.answer.busy').textContent")
        await page.js("document.querySelector('.ask button').click()")
        await page.until(DONE.format(1))
        assert "Noted." in await page.js("document.querySelector('.answer').textContent")
        assert await page.js("document.querySelector('.ask') === null")

    call = Scripted(text="First.", calls=[("save_note", {"text": "x"})])
    with_browser(work, tmp_path, model("gemini", [call, "Noted."]))


@promise("chat:web-browser", "chat:stop", "chat:failures-stored")
def test_errors_are_shown_and_answers_stopped_by_key(tmp_path: Path, with_browser: Browse) -> None:
    async def work(page: Page, url: str) -> None:
        del url
        await page.say("@all go")
        await page.until("document.querySelectorAll('.problem').length === 2")
        shown = await page.js("document.getElementById('timeline').textContent")
        for words in ("Half an answer", "Failed: ", "out of order", "No answer"):
            assert words in shown
        await page.press("Escape", 27)
        await page.until("document.querySelectorAll('.problem').length === 3")
        assert "Stopped" in await page.js("document.querySelector('[data-model=slow]').textContent")
        await picture(page, "chat-errors")
        await page.js(CLICK.format("[data-model=bad] .foot button", "Retry"))
        await page.until("document.querySelector('[data-model=bad].replaced')")
        await page.until("document.getElementById('timeline').textContent.includes('Whole now.')")

    broken = Scripted(text="Half an answer", failure=Failure("server", "out of order"))
    models = (
        model("bad", [broken, "Whole now."]),
        model("mute", [Scripted()]),
        model("slow", [Scripted(text="x", delay=50)]),
    )
    with_browser(work, tmp_path, *models)


ATTACK = """<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">
[click](javascript:window.hacked=3) **<b onclick=alert(1)>bold</b>**

```html
<svg onload="window.hacked = 4">
```
| a | b |
|---|---|
| <iframe src="javascript:window.hacked=5"> | c |
"""


@promise("chat:web-safe", "chat:web-browser")
def test_what_a_model_says_is_never_executed(tmp_path: Path, with_browser: Browse) -> None:
    async def work(page: Page, url: str) -> None:
        del url
        await page.say("@gemini " + ATTACK)
        await page.until(DONE.format(1))
        await asyncio.sleep(0.3)
        assert await page.js("window.hacked === undefined")
        inside = "document.querySelectorAll('#timeline script, #timeline img, #timeline iframe, #timeline svg').length"
        assert await page.js(inside) == 0
        assert await page.js("document.querySelectorAll('#timeline a').length") == 0
        assert await page.js("document.querySelectorAll('.answer table, .answer pre').length") == 2
        assert (
            await page.js("[...document.querySelectorAll('#timeline *')].some((n) => n.onclick || n.onerror)") is False
        )

    with_browser(work, tmp_path, model("gemini", [ATTACK]))


# The tenth fastest of forty frames, each from what changes it until it is drawn: a busy machine counts little.
COST = """(async () => {{
    const [timeline, box, costs] = [document.getElementById('timeline'), document.getElementById('text'), []];
    const {{port1, port2}} = new MessageChannel();
    for (let step = 0; step < 40; step += 1) {{
        await new Promise(requestAnimationFrame);
        const begun = performance.now();
        {};
        await new Promise((drawn) => {{ port1.onmessage = drawn; port2.postMessage(0); }});
        costs.push(performance.now() - begun);
    }}
    return costs.sort((one, other) => one - other)[9]; }})()"""
SCROLL = "timeline.scrollTop -= 500"
TYPE = "box.value += 'x'; box.dispatchEvent(new Event('input'))"
NOTICED = 100  # milliseconds, up to which something happens at once


@promise("chat:web-fluid")
def test_a_thousand_messages_stay_fluid(tmp_path: Path, with_browser: Browse) -> None:
    turns = [
        one
        for number in range(500)
        for one in (
            {"role": "user", "content": f"@gemini question {number}"},
            {"role": "gemini", "content": f"**Answer** {number}\n\n- one\n- two\n\n```py\nx = {number}\n```"},
        )
    ]
    FileStore(tmp_path).save(Conversation(name="long", id="long", entries=read_entries(turns)))

    async def work(page: Page, url: str) -> None:
        await page.js("performance.mark('begin')")
        await page.open(f"{url}/#/chat/long")
        await page.reload()
        await page.until(DONE.format(500))
        at_end = "(t => t.scrollHeight - t.scrollTop - t.clientHeight < 200)(document.getElementById('timeline'))"
        await page.until(at_end)
        await page.say("@gemini and now?")
        await page.until("document.getElementById('timeline').textContent.includes('quick')")
        assert await page.js(COST.format(SCROLL)) < NOTICED
        assert await page.js(COST.format(TYPE)) < NOTICED

    with_browser(work, tmp_path, model("gemini", ["quick " * 50]))


@promise("chat:web-accessible")
def test_every_control_has_a_name_and_works_by_keyboard_on_a_phone_in_the_dark(
    tmp_path: Path, with_browser: Callable[..., None]
) -> None:
    async def work(page: Page, url: str) -> None:
        del url
        await page.js("document.getElementById('text').focus()")
        await page.type("@ge")
        await page.until("!document.getElementById('mentions').hidden")
        await page.press("Tab", 9)
        assert await page.js("document.getElementById('text').value") == "@gemini "
        await page.type("hello")
        await page.press("Enter", 13, text="\r")
        await page.until(DONE.format(1))
        nameless = """[...document.querySelectorAll('button, input, textarea, select, a')].filter((one) =>
            !(one.textContent.trim() || one.ariaLabel || one.labels?.length)).map((one) => one.outerHTML)"""
        assert await page.js(nameless) == []
        outline = "[...document.querySelectorAll('main, nav, h1')].map((one) => one.localName)"
        assert await page.js(outline) == ["nav", "main", "nav", "h1"]
        for theme in ("light", "dark"):
            await page.js(f"document.documentElement.dataset.theme = '{theme}'")
            assert await page.js(CONTRAST) == []
        await page.size(390, 800, phone=True)
        await page.until("getComputedStyle(document.getElementById('menu')).display !== 'none'")
        assert await page.js("document.documentElement.scrollWidth <= 390")

    with_browser(work, tmp_path, model("gemini", ["A *fine* answer with `code`."]))


CONTRAST = """(() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const colour = rgb(getComputedStyle(node).backgroundColor);
      if (colour[3] > 250) return colour;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const node of document.querySelectorAll('button:not(:disabled), p, span, h1, code, label')) {
    const faded = getComputedStyle(node.closest('.foot') ?? node).opacity !== '1';
    if (!node.textContent.trim() || node.closest('[hidden], .sr') || faded) continue;
    const [more, less] = [light(rgb(getComputedStyle(node).color)), light(ground(node))].sort((x, y) => y - x);
    if ((more + 0.05) / (less + 0.05) < 4.5) bad.push(node.outerHTML.slice(0, 80));
  }
  return bad;
})()"""


@promise("chat:web-browser", "chat:show-as", "chat:export")
def test_dialogs_show_formats_models_and_ask_before_deleting(tmp_path: Path, with_browser: Browse) -> None:
    async def work(page: Page, url: str) -> None:
        del url
        await page.say("@gemini hello")
        await page.until(DONE.format(1))
        await page.js(CLICK.format(".answer .foot button", "Show as…"))
        await page.until("document.querySelector('#dialog pre').textContent.includes('Hi.')")
        await page.js("document.querySelector('#dialog select').value = 'anthropic-messages'")
        await page.js("document.querySelector('#dialog select').dispatchEvent(new Event('change'))")
        await page.until("document.querySelector('#dialog pre').textContent.includes('assistant')")
        await picture(page, "chat-show-as")
        await page.press("Escape", 27)
        await page.js("document.getElementById('models').click()")
        await page.until("document.querySelector('#dialog').textContent.includes('save_note')")
        await picture(page, "chat-models")
        await page.press("Escape", 27)
        await page.js("document.getElementById('delete').click()")
        await page.until("document.querySelector('#dialog').textContent.includes('cannot be undone')")
        await page.press("Escape", 27)
        assert len(FileStore(tmp_path).list()) == 1
        await page.js("document.getElementById('delete').click()")
        await page.js(CLICK.format("#dialog button", "Delete"))
        await page.until("document.querySelector('.empty')")
        assert FileStore(tmp_path).list() == []

    with_browser(work, tmp_path, model("gemini", ["Hi."]))


@promise("chat:web-browser", "chat:legacy")
def test_an_old_file_is_imported_and_edited_into_a_branch(tmp_path: Path, with_browser: Browse) -> None:
    old = [
        {"role": "user", "content": "@gemini weather?"},
        {"role": "gemini", "content": [{"type": "tool_call", "name": "weather", "arguments": {"city": "Oslo"}}]},
        {"role": "tool", "name": "weather", "content": "snow"},
        {"role": "gemini", "content": "It snows."},
    ]

    async def work(page: Page, url: str) -> None:
        del url
        document = json.dumps({"display_name": "Old talk", "turns": old})
        await page.js(
            f"""(input => {{
            const data = new DataTransfer();
            data.items.add(new File([{json.dumps(document)}], "old.json"));
            input.files = data.files;
            input.dispatchEvent(new Event("change")); }})(document.getElementById("import-file"))"""
        )
        await page.until("document.querySelector('.tool')")
        assert "snow" in await page.js("document.querySelector('.tool').textContent")
        await page.js(CLICK.format(".mine button", "Edit"))
        await page.until("document.querySelector('#dialog textarea')")
        await page.js("document.querySelector('#dialog textarea').value = '@gemini and Rome?'")
        await page.js(CLICK.format("#dialog button", "OK"))
        await page.until("document.getElementById('timeline').textContent.includes('Sunny there.')")
        assert {row.name for row in FileStore(tmp_path).list()} == {"Old talk", "Old talk (branch)"}

    with_browser(work, tmp_path, model("gemini", ["Sunny there."]))


DROP = """(async () => {
  const bytes = Uint8Array.from(atob('%s'), (one) => one.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], 'dot.png', {type: 'image/png'}));
  data.items.add(new File(['It is all here.'], 'notes.txt', {type: 'text/plain'}));
  const target = document.getElementById('timeline');
  const fire = (kind) => target.dispatchEvent(
    new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: data}));
  const taken = !fire('dragover');
  const shown = document.getElementById('composer').classList.contains('drop');
  fire('drop');
  return [taken, shown, document.getElementById('composer').classList.contains('drop')];
})()"""
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@promise("chat:web-drop", "chat:attachments")
def test_pictures_and_files_are_dropped_anywhere_and_reach_the_model(tmp_path: Path, with_browser: Browse) -> None:
    seen = model("gemini", ["A dot."])

    async def work(page: Page, url: str) -> None:
        del url
        assert await page.js(DROP % DOT) == [True, True, False]
        await page.until("document.querySelectorAll('#files .chip').length === 2")
        await page.say("@gemini what is this?")
        await page.until(DONE.format(1))
        assert await page.js("document.querySelector('.mine img').naturalWidth") == 1
        assert "notes.txt" in await page.js("document.querySelector('.mine').textContent")
        assert await page.js("document.querySelectorAll('#files .chip').length") == 0
        driver = seen.connect()
        assert isinstance(driver, ScriptedDriver)
        parts = driver.requests[0].messages[-1].parts
        assert [type(part).__name__ for part in parts] == ["Text", "Image", "Document"]

    with_browser(work, tmp_path, seen)


@promise("chat:web-drop")
def test_a_file_is_really_dragged_into_the_page(tmp_path: Path, with_browser: Browse) -> None:
    """By the mouse's own events: the browser would leave the page for a file that is not handled."""
    file = tmp_path / "dragged.txt"
    file.write_text("Dragged.", encoding="utf-8")

    async def work(page: Page, url: str) -> None:
        del url
        data = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            await page.command("Input.dispatchDragEvent", type=kind, x=700, y=400, data=data)
        await page.until("document.querySelector('#files .chip')?.textContent.includes('dragged.txt')")
        await page.js("document.querySelector('#files button').click()")
        assert await page.js("document.querySelectorAll('#files .chip').length") == 0

    with_browser(work, tmp_path / "chats", model("gemini", []))


@promise("chat:web-tabs", "chat:web-browser")
def test_two_tabs_show_the_same_answer_as_it_comes(tmp_path: Path, with_browser: Browse, address: str) -> None:
    async def work(page: Page, url: str) -> None:
        await page.say("@gemini note it")
        await page.until("document.querySelector('.ask')")
        async with tab(address) as other:
            await other.open(f"{url}/{await page.js('location.hash')}")
            await other.until("document.querySelector('.ask')")
            await other.say("@gemini me too")
            await other.until("document.querySelector('#status .problem')")  # one at a time, and it is said
            assert await other.js("document.getElementById('text').value") == "@gemini me too"
            await other.js("document.querySelector('.ask button').click()")
            await page.until(DONE.format(1))
            await other.until(DONE.format(1))
            same = "document.querySelector('.answer .body').textContent.replaceAll(/ \\(.*?\\)/g, '')"
            assert await page.js(same) == await other.js(same)

    call = Scripted(text="First.", calls=[("save_note", {"text": "x"})])
    with_browser(work, tmp_path, model("gemini", [call, "Noted."]))


@promise("chat:web-browser")
def test_models_are_chosen_by_button_and_added_by_name(tmp_path: Path, with_browser: Browse) -> None:
    async def work(page: Page, url: str) -> None:
        del url
        await page.type("hello")
        for name, text in (("claude", "@claude hello"), ("gemini", "@claude @gemini hello"), ("all", "@all hello")):
            await page.js(f"document.querySelector('.model[data-name={name}]').click()")
            assert await page.js("document.getElementById('text').value") == text
        pressed = "[...document.querySelectorAll('.model')].map((one) => one.ariaPressed)"
        assert await page.js(pressed) == ["true"] * 3
        await page.js("document.querySelector('.model[data-name=all]').click()")
        assert await page.js("document.getElementById('text').value") == "hello"
        await page.js("document.getElementById('models').click()")
        await page.until("document.querySelector('#dialog[open]')")
        await page.js(
            """for (const [label, value] of [['Name of another model', 'fast'], ['Another model', 'openai/gpt-5']]) {
                const box = document.querySelector(`[aria-label="${label}"]`);
                box.value = value;
                box.dispatchEvent(new Event('change')); }"""
        )
        await page.until("document.querySelector('.model[data-name=fast]')")

    with_browser(work, tmp_path, model("gemini", []), model("claude", []))


@promise("chat:web-browser", "chat:export", "chat:system-prompt")
def test_messages_are_copied_and_branched_conversations_named_and_saved(tmp_path: Path, with_browser: Browse) -> None:
    async def work(page: Page, url: str) -> None:
        await page.command("Emulation.setFocusEmulationEnabled", enabled=True)
        permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
        await page.command("Browser.grantPermissions", origin=url, permissions=permissions)
        await page.say("@gemini first")
        await page.until(DONE.format(1))
        assert await page.js("document.querySelector('[role=log]').textContent") == "gemini has answered."
        await page.js(CLICK.format(".answer .foot button", "Copy"))
        await page.until("document.getElementById('status').textContent.includes('copied')")
        assert await page.js("navigator.clipboard.readText()") == "**One**"
        await page.js("document.getElementById('system').click()")
        await page.js("document.querySelector('#dialog textarea').value = 'Be brief.'")
        await page.press("Escape", 27)
        await page.until("document.getElementById('status').textContent.includes('is kept')")
        await page.js("document.getElementById('system').click()")
        assert await page.js("document.querySelector('#dialog textarea').value") == "Be brief."
        await page.js(CLICK.format("#dialog button", "OK"))
        await page.js("document.getElementById('rename').click()")
        await page.js("document.querySelector('#dialog input').value = 'Named'")
        await page.js(CLICK.format("#dialog button", "OK"))
        await page.until("document.getElementById('title').textContent === 'Named'")
        await page.js("document.getElementById('export').click()")
        text = "fetch(document.querySelector('#dialog a').href).then((one) => one.text())"
        exported = await page.js(text)
        assert exported.startswith("# Named")
        assert "Be brief." in exported
        await page.press("Escape", 27)
        before = await page.js("location.hash")
        await page.js(CLICK.format(".answer .foot button", "Branch"))
        await page.until(f"location.hash !== '{before}' && document.querySelectorAll('.answer').length === 1")
        await page.until("document.querySelectorAll('#list li').length === 2")
        await page.js("document.getElementById('search').value = 'branch'")
        await page.js("document.getElementById('search').dispatchEvent(new Event('input'))")
        await page.until("document.querySelectorAll('#list li').length <= 1")

    with_browser(work, tmp_path, model("gemini", ["**One**"]))
    assert {row.name for row in FileStore(tmp_path).list()} == {"Named", "Named (branch)"}


SOON = """const later = window.setTimeout;
window.setTimeout = (work, time, ...more) =>
    time === 60_000 ? later(() => { work(); window.minuteHasPassed = true; }, 10) : later(work, time, ...more);"""
HIDE = """Object.defineProperty(document, 'hidden', {{value: {}, configurable: true}});
document.dispatchEvent(new Event('visibilitychange'))"""


@promise("chat:web-tabs", "chat:web-resume")
def test_a_hidden_tab_closes_its_stream_and_catches_up(tmp_path: Path, with_browser: Browse) -> None:
    """A browser has six connections for all tabs of a page; streams of forgotten ones would use them up."""

    async def work(page: Page, url: str) -> None:
        del url
        await page.command("Page.addScriptToEvaluateOnNewDocument", source=SOON)
        await page.reload()
        await page.until("document.querySelector('.empty button')")
        await page.say("@gemini one")
        await page.until(DONE.format(1))
        await page.js(HIDE.format("true"))
        await page.until("window.minuteHasPassed")
        await page.say("@gemini two")
        await page.until("document.getElementById('text').value === ''")
        await asyncio.sleep(0.3)
        assert await page.js("document.querySelectorAll('.answer').length") == 1
        await page.js(HIDE.format("false"))
        await page.until(DONE.format(2))

    with_browser(work, tmp_path, model("gemini", ["First.", "Second."]))
