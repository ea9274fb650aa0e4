"""Converts one shard from its source to its place in the output: the unit of work that every engine runs.

The output of a shard depends only on its input and the options, and is written atomically under its name. So a shard
may be converted again, by another worker or after a crash, and nothing changes.
"""

from __future__ import annotations

from itertools import islice

import msgspec
from msgspec import Struct

from dragoman.batch.batch_file_converter import converter_for
from dragoman.batch.options import JobOptions
from dragoman.batch.record_converter import SNIFFED, expected_format
from dragoman.batch.rejects import Reject, encode_rejects
from dragoman.batch.sinks import ShardWriter, write_file
from dragoman.batch.sources import STDIN, Shard, Source, read_shard, split_lines
from dragoman.batch.tally import Tally
from dragoman.detection import Detected


class ShardTask(Struct, frozen=True):
    """Everything a worker needs: what to read, how to convert it, where to write it and its counts."""

    shard: Shard
    source: Source
    options: JobOptions
    expected: Detected | None
    folder: str
    state: str
    suffix: str


class ShardResult(Struct, frozen=True):
    """The result of a shard. `digest` is of its converted records, to compare runs and engines."""

    shard: Shard
    tally: Tally
    digest: str


def convert_shard(task: ShardTask, block: bytes | None = None) -> ShardResult:
    """Read, convert and write one shard; `block` has its lines if the source cannot be read from the middle."""
    options, expected = task.options.convert, task.expected
    if task.source.name == STDIN and block is not None:  # its first records could not be inspected earlier
        expected = expected_format(options, islice(split_lines(block), SNIFFED))
    converter = converter_for(options, task.source.name, expected, task.shard.name)
    rejects, line = list[Reject](), 1
    with ShardWriter(task.folder, task.shard.name, task.suffix, dry_run=task.options.dry_run) as writer:
        for records in read_shard(task.source, task.shard, task.options) if block is None else (split_lines(block),):
            writer.write(converter.convert_many(records, line, rejects.append))
            line += len(records)
    name = f"{task.state}/{task.shard.name}"
    write_file(f"{name}.rejects", encode_rejects(rejects))
    write_file(f"{name}.ids", bytes(converter.id_digests))
    result = ShardResult(task.shard, converter.finish(line - 1), writer.digest)
    # Written last: a shard with this file is done, one without it is converted again.
    write_file(f"{name}.done", msgspec.json.encode(result))
    return result
