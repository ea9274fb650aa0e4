"""`dragoman batch`: converts and answers files of records."""

from __future__ import annotations

import argparse
from typing import Any

from dragoman.cli.ask import add_connection

SUMMARY = "convert or answer files of any size: on all cores or a Ray cluster, resumable"
DESCRIPTION = """\
Converts files of stored requests, responses and conversations. SRC is a file, a
glob, a folder (of shards, or a Hugging Face dataset), stdin (-) or an address in
object storage (s3://…, gs://…): JSON Lines, JSON arrays, Parquet, Arrow, SQLite;
.gz and .zst too. DST is a file (.jsonl, .jsonl.gz, .jsonl.zst, .json, .parquet,
.arrow, .sqlite), a folder of shards, or stdout (-).

A record that cannot be converted goes to the reject file next to DST, with its line,
path and reason; the others are converted. An interrupted job resumes when the same
command is run again, and the output is the same bytes. A report is written next to
DST: report.json, and report.html for reading.
"""
EXAMPLES = """\
examples:
  dragoman batch convert logs/*.jsonl.gz --to anthropic-messages -o converted/
  dragoman batch convert chats.parquet --column conversation --to openai-chat -o chats.jsonl
  dragoman batch convert s3://bucket/in/*.jsonl --to gemini -o s3://bucket/out --ray auto
  dragoman batch convert big.jsonl --to gemini -o look.jsonl --sample 0.01 --dry-run
  dragoman batch run questions.jsonl --model anthropic/claude-sonnet-5 -o answers.jsonl
  dragoman batch submit questions.jsonl --model anthropic/claude-sonnet-5 -o answers.jsonl

exit codes:
  0  converted, perhaps with rejects
  1  all records were rejected, or all requests failed
  2  bad input, or a bad command line
  3  more records were rejected than --max-errors allows, or a provider's batch job
     is missing or was refused
"""
RUN_DESCRIPTION = """\
Sends every request of SRC to a model: bodies of any format, or lines of batch files.
Answers are lines of a batch file with the ids of their requests, or bare bodies of
the format --to names, in the order of the requests. Failed requests are in the reject
file next to DST. An interrupted job resumes when the same command is run again:
failed requests are sent again, answered ones are not.
"""


JOB_DESCRIPTION = """\
Sends every request of SRC (bodies of any format, or lines of batch files) to the
batch API of a provider, which answers within a day at about half the price. The
job is kept in DST.job/, without keys: check it with `dragoman batch status DST`,
write the answers with `dragoman batch fetch DST`. If submitting was interrupted, run
the same command again: it submits nothing twice.
"""
JOB_EXAMPLES = """\
examples:
  dragoman batch submit questions.jsonl --model anthropic/claude-sonnet-5 -o answers.jsonl
  dragoman batch status answers.jsonl
  dragoman batch fetch answers.jsonl --wait --retry
  dragoman batch cancel answers.jsonl
"""


_PARSER: Any = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=type(parser))
    convert = actions.add_parser(
        "convert",
        help="convert records",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        **_PARSER,
    )
    convert.add_argument("sources", nargs="+", metavar="SRC", help="files, folders, globs, addresses, or - for stdin")
    convert.add_argument("-o", "--output", required=True, metavar="DST", help="a file, a folder of shards, or -")
    convert.add_argument("--to", dest="target", required=True, metavar="FORMAT", help="target format")
    _add_conversion(convert)
    _add_running(convert)

    answer = actions.add_parser(
        "run",
        help="answer every request of a file with one model",
        description=RUN_DESCRIPTION,
        **_PARSER,
    )
    answer.add_argument("sources", nargs="+", metavar="SRC", help="files of requests")
    answer.add_argument("-o", "--output", required=True, metavar="DST", help="a .jsonl file")
    answer.add_argument("--model", required=True, metavar="PROVIDER/MODEL", help="the model that answers")
    _add_answer_format(answer)
    add = answer.add_argument
    add("--concurrency", type=int, default=8, metavar="N", help="requests at a time (default: %(default)s)")
    add("--requests-per-minute", type=float, metavar="N", help="limit of requests (default: none)")
    add("--max-output-tokens", type=int, metavar="N", help="limit of answers whose request sets none")
    add("--max-errors", type=int, metavar="N", help="stop when more than N requests have failed (default: never)")
    add("--dry-run", action="store_true", help="count requests and tokens, send nothing")
    add("--prices", metavar="IN,OUT", help="prices per million tokens, for the estimate of --dry-run")
    add("--restart", action="store_true", help="discard the answers of an unfinished job")
    add("--overwrite", action="store_true", help="send all requests again and replace an existing DST")
    add("--quiet", action="store_true", help="no progress")
    add_connection(answer)
    _add_jobs(actions)


def _add_jobs(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    submit = actions.add_parser(
        "submit",
        help="submit a file of requests to a provider's batch API",
        description=JOB_DESCRIPTION,
        epilog=JOB_EXAMPLES,
        **_PARSER,
    )
    submit.add_argument("sources", nargs="+", metavar="SRC", help="files of requests")
    submit.add_argument("-o", "--output", required=True, metavar="DST", help="a .jsonl file; DST.job/ keeps the job")
    submit.add_argument("--model", required=True, metavar="PROVIDER/MODEL", help="the model that answers")
    _add_answer_format(submit)
    submit.add_argument("--max-output-tokens", type=int, metavar="N", help="limit of answers whose request sets none")
    submit.add_argument("--storage", metavar="URL", help="folder in object storage (Vertex: gs://…, Bedrock: s3://…)")
    submit.add_argument("--role", metavar="ARN", help="role that Bedrock uses to read and write the storage")
    words = "submit unanswered requests again if the provider cannot list its jobs"
    submit.add_argument("--resubmit", action="store_true", help=words)
    add_connection(submit)
    for name, summary in (
        ("status", "show the state of a batch job"),
        ("fetch", "write the answers of a batch job"),
        ("retry", "submit failed requests that may succeed now as a new batch job"),
        ("cancel", "cancel a batch job"),
    ):
        parser = actions.add_parser(name, help=summary, description=summary.capitalize() + ".", allow_abbrev=False)
        parser.add_argument("output", metavar="DST", help="the file that `batch submit -o` named")
        parser.add_argument("--json", action="store_true", help="print JSON")
        if name == "fetch":
            parser.add_argument("--wait", action="store_true", help="wait until the job has ended")
            parser.add_argument(
                "--every",
                type=float,
                default=30.0,
                metavar="SECONDS",
                help="interval with --wait (default: %(default)s)",
            )
            parser.add_argument(
                "--retry", action="store_true", help="submit failed requests that may succeed now as a new job"
            )
            parser.add_argument("--partial", action="store_true", help="write the answers so far while the job runs")
        add_connection(parser)


def _add_answer_format(parser: argparse.ArgumentParser) -> None:
    words = "format of the answers (default: %(default)s)"
    parser.add_argument("--to", dest="target", default="openai-batch", metavar="FORMAT", help=words)


def _add_conversion(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("records").add_argument
    add("--from", dest="source", metavar="FORMAT", help="format of the records (default: detected)")
    add(
        "--kind",
        choices=("auto", "request", "response", "error"),
        default="auto",
        help="kind of records (default: detected)",
    )
    add("--model", metavar="NAME", help="set the model of every request")
    add("--table", metavar="NAME", help="table of a SQLite file")
    add("--column", metavar="NAME", help="column that holds the record (default: the whole row)")
    add("--strict", action="store_true", help="reject records with any loss except notes")
    severities = ("dropped", "degraded", "invented", "noted")
    words = "leave out records with a loss of this severity or a worse one"
    add("--filter", dest="leave_out", choices=severities, help=words)
    add(
        "--sample", type=float, metavar="SHARE", help="convert only this share of the records (the same ones each time)"
    )
    add("--dry-run", action="store_true", help="convert and report, write no records")
    add("--keep-rejected", action="store_true", help="include the rejected records in the reject file")


def _add_running(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("execution").add_argument
    add("--workers", type=int, metavar="N", help="processes (default: one per core, one for small jobs)")
    add("--ray", metavar="ADDRESS", help="run on this Ray cluster: auto, HOST:PORT, or local to start one here")
    add("--shard-size", type=int, default=16, metavar="MB", help="input per shard (default: %(default)s)")
    add(
        "--output-format",
        choices=("jsonl", "jsonl.gz", "jsonl.zst", "parquet", "arrow"),
        help="format of the shards in a folder",
    )
    add("--max-errors", type=int, metavar="N", help="stop when more than N records were rejected (default: never)")
    add("--restart", action="store_true", help="discard the work of an unfinished job")
    add("--overwrite", action="store_true", help="replace an existing DST")
    add("--quiet", action="store_true", help="no progress")


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli import batch_command

    if arguments.action == "convert":
        return batch_command.convert(arguments)
    if arguments.action == "run":
        return batch_command.answer(arguments)
    from dragoman.cli import batch_jobs

    return batch_jobs.run(arguments)
