"""`dragoman batch`: files of records, as many as there are."""

from __future__ import annotations

import argparse

from dragoman.cli.ask import add_connection

SUMMARY = "convert files of any size: all cores or a Ray cluster, resumable, with a report"
DESCRIPTION = """\
Converts files of stored requests, responses and conversations. SRC is a file, a
glob, a folder (of shards, or a Hugging Face dataset), stdin (-) or an address in
object storage (s3://…, gs://…): JSON Lines, JSON arrays, Parquet, Arrow, SQLite;
.gz and .zst too. DST is a file (.jsonl, .jsonl.gz, .jsonl.zst, .parquet), a folder
of shards, or stdout (-).

A record that cannot be converted goes to the reject file beside DST, with its line,
path and reason; the others go on. Stopped in any way, the same command goes on
where it was, and the output is the same bytes. At the end a report stands beside
DST: report.json, and report.html to look at.
"""
EXAMPLES = """\
examples:
  dragoman batch convert logs/*.jsonl.gz --to anthropic-messages -o converted/
  dragoman batch convert chats.parquet --column conversation --to openai-chat -o chats.jsonl
  dragoman batch convert s3://bucket/in/*.jsonl --to gemini -o s3://bucket/out --ray auto
  dragoman batch convert big.jsonl --to gemini -o look.jsonl --sample 0.01 --dry-run
  dragoman batch run questions.jsonl --model anthropic/claude-sonnet-5 -o answers.jsonl

exit codes:
  0  converted, perhaps with rejects
  2  bad input, or the command line was not understood
  3  more records were rejected than --max-errors allows
"""


RUN_DESCRIPTION = """\
Asks a model every request of SRC: bodies of any format, or lines of batch files.
Answers are lines of a batch file with the ids of their requests, or bare bodies of
the format --to names, in the order of the requests. What failed is in the reject
file beside DST. Stopped in any way, the same command goes on where it was: an
answer that came is not asked for again, a failure is.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=type(parser))
    convert = actions.add_parser(
        "convert",
        help="convert records",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    convert.add_argument("sources", nargs="+", metavar="SRC")
    convert.add_argument("-o", "--output", required=True, metavar="DST")
    convert.add_argument("--to", dest="target", required=True, metavar="FORMAT")
    _add_conversion(convert)
    _add_running(convert)

    answer = actions.add_parser(
        "run",
        help="answer every request of a file with one model",
        description=RUN_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    answer.add_argument("sources", nargs="+", metavar="SRC")
    answer.add_argument("-o", "--output", required=True, metavar="DST", help="a .jsonl file")
    answer.add_argument("--model", required=True, metavar="PROVIDER/MODEL")
    answer.add_argument(
        "--to", dest="target", default="openai-batch", metavar="FORMAT", help="of the answers (default: %(default)s)"
    )
    add = answer.add_argument
    add("--concurrency", type=int, default=8, metavar="N", help="requests at a time (default: %(default)s)")
    add("--requests-per-minute", type=float, metavar="N", help="at most (default: no limit)")
    add("--max-output-tokens", type=int, metavar="N", help="for requests that do not say it")
    add("--max-errors", type=int, metavar="N", help="stop when more requests failed (default: never)")
    add("--dry-run", action="store_true", help="count requests and tokens, ask nothing")
    add("--prices", metavar="IN,OUT", help="per million tokens, for the estimate of --dry-run")
    add("--quiet", action="store_true", help="no progress")
    add_connection(answer)


def _add_conversion(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("what is converted").add_argument
    add("--from", dest="source", metavar="FORMAT", help="default: found in the records")
    add("--kind", choices=("auto", "request", "response", "error"), default="auto", help="default: %(default)s")
    add("--model", metavar="NAME", help="the model requests ask for, instead of the one they name")
    add("--table", metavar="NAME", help="of a SQLite file")
    add("--column", metavar="NAME", help="that holds the record (default: the whole row)")
    add("--strict", action="store_true", help="reject records that lose more than bookkeeping")
    severities = ("dropped", "degraded", "invented", "noted")
    words = "leave out records with a loss of this severity or a worse one"
    add("--filter", dest="leave_out", choices=severities, help=words)
    add("--sample", type=float, metavar="SHARE", help="convert this share of the records, always the same ones")
    add("--dry-run", action="store_true", help="convert and report, write no records")
    add("--keep-rejected", action="store_true", help="put the rejected records into the reject file")


def _add_running(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("how it runs").add_argument
    add("--workers", type=int, metavar="N", help="processes (default: one per core)")
    add("--ray", metavar="ADDRESS", help="run on this Ray cluster: auto, HOST:PORT, or local to start one here")
    add("--shard-size", type=int, default=16, metavar="MB", help="input per shard (default: %(default)s)")
    add("--output-format", choices=("jsonl", "jsonl.gz", "jsonl.zst", "parquet"), help="of the shards in a folder")
    add("--max-errors", type=int, metavar="N", help="stop when more records were rejected (default: never)")
    add("--restart", action="store_true", help="discard what an unfinished job has done")
    add("--overwrite", action="store_true", help="replace an existing DST")
    add("--quiet", action="store_true", help="no progress")


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli import batching

    return batching.convert(arguments) if arguments.action == "convert" else batching.answer(arguments)
