"""A job: its plan, its folder on disk, what is already done, and how it ends.

Beside the output a job keeps a folder with `job.json` (its options) and, for each finished shard, its counts and
rejects. Run again after a crash, it converts the unfinished shards; the result is the same bytes.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import IO

import msgspec
from msgspec import Struct

import dragoman
from dragoman.batch import sinks
from dragoman.batch.options import JobOptions
from dragoman.batch.provider_files import BATCH_FILES
from dragoman.batch.record_converter import SNIFFED, expected_format
from dragoman.batch.rejects import Reject
from dragoman.batch.remote_files import is_remote
from dragoman.batch.repeated_ids import repeated_ids
from dragoman.batch.report import Report
from dragoman.batch.shard_conversion import ShardResult, ShardTask
from dragoman.batch.sources import STDIN, Shard, Source, find_sources, first_records, plan_shards
from dragoman.batch.tally import LossCount, RejectCount, Tally
from dragoman.detection import Detected
from dragoman.errors import DragomanError
from dragoman.file_locks import take_lock

STDOUT = "-"
TABLES = frozenset({"parquet", "arrow", "sqlite"})
"""Layouts with columns."""
_STATE = ".batch"
"""The folder of a job's state, in a folder of shards."""
_LOCK = "lock"
_REPORTS = frozenset({"rejects.jsonl", "report.json", "report.html"})


class JobError(DragomanError):
    """A job that cannot start or resume; the message says what to do."""


class JobIdentity(Struct, frozen=True):
    """The sources and options of a job. An unfinished job is resumed only if all of this is the same."""

    version: str
    sources: list[Source]
    options: JobOptions


def _place(name: str) -> PurePath:
    """Return a name of a file, folder or URL in a form that can be compared."""
    return PurePath(name) if is_remote(name) else Path(name).resolve()


class Job:
    """A bulk conversion from `sources` to `output`: a file, a folder of shards, or stdout (`-`)."""

    def __init__(self, names: Sequence[str], output: str, options: JobOptions) -> None:
        options.convert.check()
        self.options = options
        self.output = output
        self.sources = find_sources(names, options.convert.source)
        suffix = "jsonl" if output == STDOUT else sinks.suffix_of(output)
        self._is_folder = suffix is None
        self.suffix = suffix or options.output_format or "jsonl"
        sinks.check_packages(self.suffix)
        if self.suffix not in (sinks.SUFFIXES if self._is_folder else sinks.FILE_SUFFIXES):
            raise JobError(f"unknown output format {self.suffix!r}: {', '.join(sinks.SUFFIXES)}")
        self._check_places()
        self.shards = {
            index: plan_shards(source, index, options) for index, source in enumerate(self.sources) if source.splits
        }
        self._expected = [self._expect(index) for index in range(len(self.sources))]
        self._temporary = tempfile.mkdtemp(prefix="dragoman-batch-") if output == STDOUT else None
        self.state = self._temporary or (f"{output.rstrip('/')}/{_STATE}" if self._is_folder else f"{output}.batch")
        self.folder = output.rstrip("/") if self._is_folder else self.state
        self._lock: IO[bytes] | None = None

    def _check_places(self) -> None:
        """Reject at the start what would fail, or do harm, at the end."""
        if self.output != STDOUT:
            self._check_output()
        for source in self.sources:
            if self.options.table is not None and source.layout != "sqlite":
                raise JobError(f"--table is for SQLite files, and {source.name} is not one")
            if self.options.column is not None and source.layout not in TABLES:
                raise JobError(f"--column is for tables (Parquet, Arrow, SQLite), and {source.name} is not one")

    def _check_output(self) -> None:
        local = None if is_remote(self.output) else Path(self.output)
        if local is not None and not self._is_folder and local.is_dir():
            raise JobError(f"{self.output} is a folder; name a file, or write shards with: -o {self.output}/new")
        if local is not None and self._is_folder and local.exists() and not local.is_dir():
            raise JobError(f"{self.output} is not a folder; name one, a new file such as new.jsonl, or - for stdout")
        for name in (source.name for source in self.sources):
            if _place(name) == _place(self.output):
                raise JobError(f"{self.output} is the source too; write to another file")
            if self._is_folder and _place(name).parent == _place(self.output):
                raise JobError(f"{name} is a source in the folder {self.output}; write to another folder")

    # ── beginning ──

    def begin(self, *, restart: bool = False, overwrite: bool = False) -> dict[str, ShardResult]:
        """Create the folders. Returns the finished shards of an earlier run, by name."""
        identity = JobIdentity(dragoman.__version__, self.sources, self.options)
        if sinks.exists(self.state):
            self._take_lock()
        stored = sinks.read_file(f"{self.state}/job.json")
        if restart and stored is not None:
            self._remove_earlier()
            sinks.remove(f"{self.state}/job.json")  # first: without it, what is left of the state counts for nothing
            stored = None
        elif stored is None:
            self._refuse_to_overwrite(overwrite=overwrite)
        if stored is None:
            self._make_state(identity)
            return {}
        if msgspec.json.decode(stored, type=JobIdentity) != identity:
            raise JobError(
                f"{self.state} belongs to an unfinished job with other sources or options; "
                "--restart discards it, another output keeps it"
            )
        if any(source.name == STDIN for source in self.sources):
            raise JobError("a job that reads stdin cannot be resumed; --restart begins again")
        for name in sinks.list_folder(self.folder):  # left by workers that were killed
            if name.startswith("part-") and name.endswith(sinks.UNFINISHED):
                sinks.remove(f"{self.folder}/{name}")
        return self._read_finished()

    def _make_state(self, identity: JobIdentity) -> None:
        """Create the folders, and forget whatever an earlier job left in them."""
        sinks.make_folder(self.folder)
        sinks.make_folder(self.state)
        self._take_lock()
        for name in sinks.list_folder(self.state):
            if name != _LOCK:
                sinks.remove(f"{self.state}/{name}")
        sinks.write_file(f"{self.state}/job.json", msgspec.json.encode(identity))

    def _take_lock(self) -> None:
        """Refuse to work beside another process on the same output. Object stores have no locks."""
        if sys.platform == "win32":  # an open file could not be removed at the end
            return
        if self._lock is None and not is_remote(self.state):
            self._lock = Path(self.state, _LOCK).open("ab")  # noqa: SIM115 - until `close`
            if not take_lock(self._lock):
                self._lock.close()
                self._lock = None
                raise JobError(f"another process is writing {self.output}; wait for it, or choose another output")

    def _refuse_to_overwrite(self, *, overwrite: bool) -> None:
        if self.output == STDOUT:
            return
        if overwrite:
            self._remove_earlier()
            return
        if self._is_folder:
            taken = any(name != _STATE for name in sinks.list_folder(self.folder))
        else:
            taken = sinks.exists(self.output)
        if taken:
            raise JobError(f"{self.output} exists; --overwrite replaces it")

    def _remove_earlier(self) -> None:
        """Remove the shards and the report of an earlier job from the folder: this one may write fewer shards."""
        if self._is_folder and not self.options.dry_run:
            for name in sinks.list_folder(self.folder):
                if sinks.SHARD.fullmatch(name) or name in _REPORTS:
                    sinks.remove(f"{self.folder}/{name}")

    def _read_finished(self) -> dict[str, ShardResult]:
        finished = {}
        for name in sinks.list_folder(self.state):
            content = sinks.read_file(f"{self.state}/{name}") if name.endswith(".done") else None
            if content is not None:
                finished[name.removesuffix(".done")] = msgspec.json.decode(content, type=ShardResult)
        return finished

    def _expect(self, index: int) -> Detected | None:
        """Return what the source holds: as the caller named it, or as found in its first records if these agree."""
        source, shards = self.sources[index], self.shards.get(index)
        if source.splits and not shards:
            return None
        records = first_records(source, shards[0] if shards else None, self.options, SNIFFED)
        return expected_format(self.options.convert, records)

    def task(self, shard: Shard) -> ShardTask:
        """Return the task that converts one shard."""
        return ShardTask(
            shard,
            self.sources[shard.source],
            self.options,
            self._expected[shard.source],
            self.folder,
            self.state,
            self.suffix,
        )

    # ── ending ──

    def finish(self, results: Sequence[ShardResult], seconds: float, resumed: int = 0) -> Report:
        """Combine the results of the shards: the output, the rejects, the report.

        An earlier run converted `resumed` of the records.
        """
        ordered = sorted(results, key=lambda result: (result.shard.source, result.shard.number))
        tally = self._total(ordered)
        self._refuse_mixed_models(tally)
        self._refuse_repeated_ids(ordered)
        rejects = self._join_rejects(ordered)
        report = Report(
            version=dragoman.__version__,
            target=self.options.convert.target,
            sources=[source.name for source in self.sources],
            output=self.output,
            seconds=seconds,
            resumed=resumed,
            shards=len(ordered),
            digests=[result.digest for result in ordered],
            tally=tally,
        )
        if not self.options.dry_run:
            self._publish(ordered)
        self._write_beside("rejects.jsonl", rejects)
        if self.output != STDOUT:
            self._write_beside("report.json", msgspec.json.format(msgspec.json.encode(report)))
            self._write_beside("report.html", report.page())
        self.discard()
        return report

    def _refuse_mixed_models(self, tally: Tally) -> None:
        file = BATCH_FILES.get(self.options.convert.target)
        if file is not None and file.one_model and len(tally.models) > 1:
            raise JobError(
                f"a {file.name} is for one model, and these records name {', '.join(sorted(tally.models)[:5])}; "
                "name one with --model, or convert them apart"
            )

    def _refuse_repeated_ids(self, results: Sequence[ShardResult]) -> None:
        """Refuse a batch file in which two requests have one id: a provider would refuse it, or mix up the answers."""
        if self.options.convert.target not in BATCH_FILES:
            return
        found = repeated_ids(sinks.read_file(f"{self.state}/{result.shard.name}.ids") or b"" for result in results)
        if found.count:
            raise JobError(
                f"{found.count:,} requests have the id of an earlier one (the first is line {found.first:,} of the "
                "output), and ids in a batch file must differ"
            )

    def discard(self) -> None:
        """Remove the job's own state."""
        sinks.remove(self.state)

    def close(self) -> None:
        """Let other processes continue the job. What was meant for stdout is of no use to them, and is removed."""
        if self._temporary is not None:
            sinks.remove(self._temporary)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _total(self, results: Sequence[ShardResult]) -> Tally:
        total, lines, source = Tally(), 0, -1
        for result in results:
            if result.shard.source != source:
                source, lines = result.shard.source, 0
            counts: list[LossCount | RejectCount] = [*result.tally.losses, *result.tally.rejects]
            for count in counts:
                count.examples = [msgspec.structs.replace(one, line=one.line + lines) for one in count.examples]
            lines += result.tally.lines
            total.merge(result.tally)
        total.sort()
        return total

    def _join_rejects(self, results: Sequence[ShardResult]) -> bytes:
        """Return all rejects in the order of their records, with lines counted from the start of their source."""
        decode, pieces, lines, source = msgspec.json.Decoder(Reject).decode, list[bytes](), 0, -1
        for result in results:
            if result.shard.source != source:
                source, lines = result.shard.source, 0
            content = sinks.read_file(f"{self.state}/{result.shard.name}.rejects") if result.tally.rejected else None
            for line in (content or b"").splitlines():
                reject = decode(line)
                pieces.append(msgspec.json.encode(msgspec.structs.replace(reject, line=reject.line + lines)) + b"\n")
            lines += result.tally.lines
        return b"".join(pieces)

    def _publish(self, results: Sequence[ShardResult]) -> None:
        names = [f"{self.folder}/{result.shard.name}.{self.suffix}" for result in results]
        if self.output == STDOUT:
            sinks.join_shards(names, self.suffix, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        elif not self._is_folder:
            with sinks.replacing(self.output) as stream:
                sinks.join_shards(names, self.suffix, stream)

    def _write_beside(self, name: str, content: bytes) -> None:
        if self.output == STDOUT:
            if content:
                sys.stderr.buffer.write(content)
            return
        sinks.write_file(self.beside(name), content)

    def beside(self, name: str) -> str:
        """Return where a file about the job is written: in the folder of shards, or beside the output file."""
        return f"{self.folder}/{name}" if self._is_folder else f"{self.output}.{name}"
