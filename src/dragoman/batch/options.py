"""Options of a bulk conversion. They also identify a job that is resumed."""

from __future__ import annotations

from typing import Literal, Required, TypeAlias, TypedDict

from msgspec import Struct

from dragoman.batch.provider_files import BATCH_FILES
from dragoman.codecs.datasets.catalogue import dataset
from dragoman.codecs.registry import codec, formats
from dragoman.detection import Kind
from dragoman.errors import InvalidValue
from dragoman.loss import SEVERITIES, Severity

KindOption: TypeAlias = Kind | Literal["auto"]

SHARD_BYTES = 16 << 20
"""Input bytes per shard: small enough that a killed job repeats little, large enough that a shard is worth a file."""


class ConvertOptions(Struct, frozen=True, kw_only=True):
    """How each record is converted.

    `source` and `kind` name what the records are; None and "auto" detect it. `leave_out` drops records with a loss of
    that severity or a worse one; `strict` rejects them as errors. `sample` keeps a fraction of the records, chosen by
    their bytes, so that the same records are chosen every time.
    """

    target: str
    source: str | None = None
    kind: KindOption = "auto"
    model: str | None = None
    strict: bool = False
    leave_out: Severity | None = None
    sample: float | None = None
    keep_rejected: bool = False
    """Put the rejected record itself into the reject file. Off by default, because records may hold secrets."""

    def check(self) -> None:
        """Raise a typed error for a format that does not exist or a number out of range."""
        for name in (self.target, self.source):
            if name is not None and name not in BATCH_FILES:
                codec(name)
        if self.target in formats("dataset") and dataset(self.target).write is None:
            raise InvalidValue(
                path="target", expected="a format that is written", found=f"{self.target}, which is only read"
            )
        if self.sample is not None and not 0 < self.sample <= 1:
            raise InvalidValue(path="ConvertOptions.sample", expected="a fraction in (0, 1]", found=str(self.sample))
        if self.leave_out is not None and self.leave_out not in SEVERITIES:
            raise InvalidValue(
                path="ConvertOptions.leave_out", expected=" | ".join(SEVERITIES), found=repr(self.leave_out)
            )
        if self.kind in {"response", "error"} and self.target in formats("record"):
            raise InvalidValue(
                path="ConvertOptions.kind", expected="request: histories are kept as requests", found=self.kind
            )


class ConvertArguments(TypedDict, total=False):
    """`ConvertOptions` as keyword arguments of the functions that convert."""

    target: Required[str]
    source: str | None
    kind: KindOption
    model: str | None
    strict: bool
    leave_out: Severity | None
    sample: float | None
    keep_rejected: bool


class RunOptions(Struct, frozen=True, kw_only=True):
    """How a job runs. None of these options changes what the job writes."""

    engine: Literal["local", "ray"] = "local"
    workers: int | None = None
    """Processes or Ray workers; None: all cores."""
    ray_address: str | None = None
    """Address of a running cluster (`auto` or ray://…); None: Ray is started on this machine."""
    max_errors: int | None = None
    """Stop when more records than this are rejected; None: never."""
    restart: bool = False
    """Discard the results of an unfinished job."""
    overwrite: bool = False


class JobOptions(Struct, frozen=True, kw_only=True):
    """Where a job reads and writes, and how it converts."""

    convert: ConvertOptions
    shard_bytes: int = SHARD_BYTES
    table: str | None = None
    column: str | None = None
    """SQLite: the table; SQLite, Parquet and Arrow: the column that holds the record (otherwise the whole row)."""
    output_format: str | None = None
    """Suffix of the shards in an output folder: jsonl (the default), jsonl.gz, jsonl.zst, parquet or arrow."""
    dry_run: bool = False
    """Convert and report, but write no records."""
