"""Conversations under test: scripted models, and events in a form that is easy to compare."""

import asyncio
from collections.abc import Iterable
from typing import Any

from dragoman.agent import tool
from dragoman.chat.events import AnyChatEvent
from dragoman.chat.participants import Participant, participant
from dragoman.chat.service import ChatService
from dragoman.drivers import ScriptedDriver
from dragoman.drivers.scripted import Script
from dragoman.ir import Message
from tests.support.waiting import PATIENCE


def model(name: str, script: Script, **options: Any) -> Participant:
    return participant(name, driver=ScriptedDriver(script, name=f"scripted/{name}"), **options)


def chat_of(*participants: Participant, **options: Any) -> ChatService:
    return ChatService(participants, **options)


def driver_of(service: ChatService, name: str) -> ScriptedDriver:
    driver = service.participants[name].connect()
    assert isinstance(driver, ScriptedDriver)
    return driver


def sent_to(service: ChatService, name: str, request: int = -1) -> list[tuple[str, str]]:
    """(role, text) of what a model was sent."""
    return [(message.role, describe(message)) for message in driver_of(service, name).requests[request].messages]


def describe(message: Message) -> str:
    calls = [f"call {call.name}" for call in message.tool_calls]
    results = [f"result {result.name}" for result in message.tool_results]
    return " ".join([message.text, *calls, *results]).strip()


def stored_entries(service: ChatService) -> list[tuple[str, str, str]]:
    """(role, text, status) of what is stored."""
    return [(entry.role, entry.text, entry.status) for entry in service.conversation.entries]


def talk(service: ChatService, *texts: str) -> list[AnyChatEvent]:
    """All events of sending these messages one after the other."""
    events: list[AnyChatEvent] = []

    async def run() -> None:
        async with asyncio.timeout(PATIENCE):
            with service.watch(events.append):
                for text in texts:
                    await service.send(text)

    asyncio.run(run())
    return events


def of_kind(events: Iterable[AnyChatEvent], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


@tool(read_only=True)
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


@tool
def note(text: str) -> str:
    """Write a note down."""
    return f"noted: {text}"
