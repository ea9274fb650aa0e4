"""A chat turn in another API's format, with the losses on its way to the model."""

from __future__ import annotations

from msgspec import Struct, structs

from dragoman import translate
from dragoman.chat.participants import Participant
from dragoman.chat.service import ChatService
from dragoman.chat.views import messages_of
from dragoman.drivers.base import Defaults
from dragoman.drivers.providers import ALIASES, PROVIDERS
from dragoman.drivers.query import build_request
from dragoman.errors import DragomanError
from dragoman.web.body_views import LossRow, loss_rows, text_of


class Translation(Struct, frozen=True, kw_only=True):
    """One request, in the format it was sent in and in that of the model's provider."""

    model: str
    source: str
    target: str
    sent: str = ""
    received: str = ""
    losses: list[LossRow] = []
    problem: str = ""


def translate_turn(service: ChatService, participant: Participant, turn: str) -> Translation:
    """Translates the conversation up to this turn as the gateway does."""
    head = participant.model.partition("/")[0]
    provider = PROVIDERS.get(ALIASES.get(head, head))
    source, target = participant.format, participant.format if provider is None else provider.format
    entries = service.conversation.entries
    place = next(index for index, entry in enumerate(entries) if entry.id == turn)
    try:
        messages = messages_of(service.fit(participant, entries[: place + 1]).entries)
        system = service.conversation.system_prompt
        settings: Defaults = {"system": system} if system else {}
        request = build_request(None, messages=messages, settings=settings)
        request = structs.replace(request, model=participant.model)
        sent = translate.encode_request(request, source)
        received = translate.translate_request(sent.content, source=source, target=target)
    except DragomanError as error:
        return Translation(model=participant.name, source=source, target=target, problem=str(error))
    return Translation(
        model=participant.name,
        source=source,
        target=target,
        sent=text_of(sent.content),
        received=text_of(received.content),
        losses=loss_rows((*sent.losses, *received.losses)),
    )
