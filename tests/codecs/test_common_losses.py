"""Losses that several formats report in the same words."""

import pytest

from dragoman import ir
from dragoman.codecs.registry import codec
from dragoman.losses import LossLog
from tests.support.promises import promise


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("answer_id", [None, ""])
def test_id_and_model_that_clients_expect_are_filled_in_and_noted(target: str, answer_id: str | None) -> None:
    completion = ir.Completion((ir.Message("assistant", "hi"),), ir.Finish("stop"), id=answer_id)
    log = LossLog()
    encoded = codec(target).encode_response(completion, log)
    assert encoded.body["id"]
    assert [entry[1:4] for entry in log.entries] == [
        ("id", "id of the answer", "noted"),
        ("model", "empty model name", "noted"),
    ]
