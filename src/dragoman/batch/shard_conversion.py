"""One shard from its source to its place in the output: the unit of work that every engine runs.

The output of a shard depends on its input and the options alone, and appears under its name at once and whole. So a
shard may be converted again, by another worker or after a crash, and nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from dragoman.batch.batch_file_converter import converter_for
from dragoman.batch.options import JobOptions
from dragoman.batch.record_converter import Reject, encode_rejects
from dragoman.batch.sinks import ShardWriter, write_file
from dragoman.batch.sources import Shard, Source, read_shard
from dragoman.batch.tally import Tally
from dragoman.detection import Detected


class ShardTask(Struct, frozen=True):
    """Everything a worker needs: what to read, how to convert it, where to write it and what to remember about it."""

    shard: Shard
    source: Source
    options: JobOptions
    expected: Detected | None
    folder: str
    state: str
    suffix: str


class ShardResult(Struct, frozen=True):
    """What became of a shard. `digest` is of its converted records, to compare runs and engines."""

    shard: Shard
    tally: Tally
    digest: str


def convert_shard(task: ShardTask, block: list[bytes] | None = None) -> ShardResult:
    """Read, convert and write one shard; `block` has its records where the source cannot be entered in the middle."""
    records: Iterable[bytes] = read_shard(task.source, task.shard, task.options) if block is None else block
    converter = converter_for(task.options.convert, task.source.name, task.expected, task.shard.name)
    convert, rejects, line = converter.convert, list[Reject](), 0
    writer = ShardWriter(task.folder, task.shard.name, task.suffix, dry_run=task.options.dry_run)
    for line, raw in enumerate(records, 1):
        record = raw.strip()
        if not record:
            continue
        converted = convert(record, line)
        if isinstance(converted, bytes):
            writer.write(converted)
        elif converted is not None:
            rejects.append(converted)
    name = f"{task.state}/{task.shard.name}"
    write_file(f"{name}.rejects", encode_rejects(rejects))
    result = ShardResult(task.shard, converter.finish(line), writer.commit())
    # Last: a shard with this file is done, one without it is converted again.
    write_file(f"{name}.done", msgspec.json.encode(result))
    return result
