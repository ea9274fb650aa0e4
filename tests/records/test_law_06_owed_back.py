"""Law 6 for record formats: a store keeps what any vendor minted, and hands it back to that vendor only."""

from typing import Any

import pytest
from hypothesis import given

import dragoman
from dragoman import ir
from dragoman.fidelity.echo import CONTINUE
from tests import strategies
from tests.laws.test_law_06_owed_back import (
    ANSWERS,
    MODELS_ASKED,
    SECRET,
    answer_body,
    blocks_of,
    leaks,
    signatures_in,
    spelled,
)
from tests.support.cases import each
from tests.support.clients import OPENING
from tests.support.formats import FORMATS, SIGNED_AS
from tests.support.promises import promise
from tests.support.records import RECORDS

pytestmark = promise("law:6-owed-back")

CASES = [
    pytest.param(vendor, store, signed, id=f"{vendor}, {name}, in {store}")
    for vendor in FORMATS
    for store in RECORDS
    for name, signed in ANSWERS.get(vendor, {}).items()
]


def stored(vendor: str, store: str, signed: dict[str, Any]) -> bytes:
    history = CONTINUE[vendor](OPENING[vendor], answer_body(vendor, signed))
    return dragoman.translate_request(history, source=vendor, target=store).json()


@each(("vendor", "store", "signed"), CASES)
def test_what_was_minted_returns_to_its_own_part(vendor: str, store: str, signed: dict[str, Any]) -> None:
    body = stored(vendor, store, signed)
    assert SECRET in body.decode()
    back = dragoman.translate_request(body, source=store, target=vendor, model=MODELS_ASKED[vendor]).body
    assert signatures_in(spelled(vendor, back)) == signatures_in(blocks_of(signed))


@each(("vendor", "store", "signed"), CASES)
def test_what_was_minted_reaches_no_other_vendor(vendor: str, store: str, signed: dict[str, Any]) -> None:
    body = stored(vendor, store, signed)
    for stranger in FORMATS:
        if not _is_kin(stranger, vendor):
            sent = dragoman.translate_request(body, source=store, target=stranger, model="some-model")
            assert not leaks(sent.json())


def _is_kin(name: str, vendor: str) -> bool:
    """Formats of one vendor read each other's signatures."""
    return SIGNED_AS[name] == SIGNED_AS[vendor] or name.split("-", maxsplit=1)[0] == vendor.split("-", maxsplit=1)[0]


@given(request=strategies.REQUESTS)
@each("store", RECORDS)
def test_generated_signatures_survive_the_store_or_are_reported(store: str, request: ir.Request) -> None:
    encoded = dragoman.encode_request(request, store)
    there = dragoman.decode_request(encoded.json(), store)
    minted = {_signature(part) for message in request.messages for part in message.parts} - {None}
    kept = {_signature(part) for message in there.messages for part in message.parts} - {None}
    assert kept <= minted
    lost = [signature for signature in minted - kept if signature is not None]
    assert not lost or any(loss.severity == "dropped" for loss in encoded.losses), lost


def _signature(part: ir.AnyPart) -> tuple[str, str] | None:
    found: ir.Signature | None = getattr(part, "signature", None)
    return None if found is None else (found.family, found.data)
