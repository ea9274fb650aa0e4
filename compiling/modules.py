"""The modules that are compiled in a wheel: those that run for every body, and for every request of the gateway.

Modules with structs are never among them: msgspec reads the annotations of a struct, and mypyc removes them
(tests/test_compiling.py). Classes that programs may derive from stay Python too (streams.py): Python cannot derive from
a compiled class. The others stay Python because they run rarely, or only when they are imported.
"""

from pathlib import Path
from typing import Final

_OF_EACH_CODEC: Final = (
    "audio.py",
    "caching.py",
    "compatible.py",
    "echo.py",
    "frames.py",
    "hosted_tools.py",
    "items.py",
    "json_paths.py",
    "media.py",
    "messages.py",
    "parts.py",
    "request.py",
    "response.py",
    "results.py",
    "server_items.py",
    "steps.py",
    "stream.py",
    "stream_encoding.py",
    "thinking.py",
    "tools.py",
)
_SHARED: Final = (
    "event_reader.py",
    "event_writer.py",
    "losses.py",
    "translate.py",
    "codecs/accumulate.py",
    "codecs/annotations.py",
    "codecs/anthropic_messages/foreign_signatures.py",
    "codecs/arguments.py",
    "codecs/base64_alphabets.py",
    "codecs/bedrock_converse/foreign_signatures.py",
    "codecs/block_encoder.py",
    "codecs/block_sequencer.py",
    "codecs/block_streams.py",
    "codecs/cache_breakpoints.py",
    "codecs/claude_settings.py",
    "codecs/claude_tools.py",
    "codecs/common_losses.py",
    "codecs/cohere_chat/foreign_signatures.py",
    "codecs/document_citations.py",
    "codecs/failures.py",
    "codecs/framing.py",
    "codecs/gemini_interactions/foreign_signatures.py",
    "codecs/google_media.py",
    "codecs/google_signatures.py",
    "codecs/google_vocabulary.py",
    "codecs/ids.py",
    "codecs/media.py",
    "codecs/memo.py",
    "codecs/object_root_schemas.py",
    "codecs/openai_chat/foreign_signatures.py",
    "codecs/openai_chat/images.py",
    "codecs/openai_client_items.py",
    "codecs/openai_client_tools.py",
    "codecs/openai_responses/foreign_signatures.py",
    "codecs/reading.py",
    "codecs/reasoning_effort.py",
    "codecs/reasoning_tags.py",
    "codecs/result_errors.py",
    "codecs/result_media.py",
    "codecs/search_results.py",
    "codecs/shared_settings.py",
    "codecs/shared_tools.py",
    "codecs/signature_blocks.py",
    "codecs/signature_tags.py",
    "codecs/stream_codec.py",
    "codecs/system_text.py",
    "codecs/text_offsets.py",
    "codecs/timestamps.py",
    "codecs/tuple_schemas.py",
    "codecs/unknown_keys.py",
    "ir/content.py",
    "ir/exact_json.py",
    "ir/notes.py",
    "ir/traits.py",
    "passes/answers.py",
    "passes/legalise.py",
    "passes/names.py",
    "passes/pairing.py",
    "passes/private.py",
    "passes/survey.py",
    "passes/turns.py",
    "schema/adaptation.py",
    "schema/keywords.py",
    "schema/root.py",
    "schema/source.py",
    "schema/steps.py",
    "schema/walk.py",
    # The path of a request through the gateway.
    "gateway/access.py",
    "gateway/app.py",
    "gateway/capture.py",
    "gateway/http1.py",
    "gateway/http_server.py",
    "gateway/metrics.py",
    "gateway/relay.py",
    "gateway/upstream_calls.py",
    "gateway/upstream_http.py",
    "gateway/write_batching.py",
)


def compiled_modules(source: Path) -> list[str]:
    """The files to compile, relative to the folder that holds the package."""
    package = source / "dragoman"
    codecs = [path.parent for path in package.glob("codecs/*/wire.py")]
    found = [package / name for name in _SHARED]
    found += [folder / name for folder in codecs for name in _OF_EACH_CODEC if (folder / name).exists()]
    return sorted(path.relative_to(source).as_posix() for path in found)
