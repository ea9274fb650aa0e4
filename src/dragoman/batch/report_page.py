"""The report as one HTML file: numbers, plots drawn as SVG, losses and rejects as tables. No script, no network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from dragoman.batch.report import Report
from dragoman.batch.tally import Example, LossCount, Sizes
from dragoman.loss import SEVERITIES

if TYPE_CHECKING:
    from dragoman.batch.inference import InferenceReport

_ROWS = 200
"""Rows of a table that are shown; the JSON report has all of them."""

_THOUSAND = 1_000

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1e; --soft: #6b6b70; --line: #d9d9de; --paper: #fff; --bar: #3b6ea8;
  --dropped: #b3261e; --degraded: #b26a00; --invented: #6a4fa3; --noted: #6b6b70; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececf0; --soft: #a0a0a8; --line: #3a3a40; --paper: #17171a;
  --bar: #7aa7d9; --dropped: #ff8a80; --degraded: #ffb74d; --invented: #b39ddb; --noted: #a0a0a8; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p.where { color: var(--soft); margin: .25rem 0 1.5rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); gap: 1rem; margin: 0; }
dt { color: var(--soft); font-size: .85rem; }
dd { margin: 0; font-size: 1.4rem; font-variant-numeric: tabular-nums; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1.5rem; }
figure { margin: 0; } figcaption { color: var(--soft); font-size: .85rem; }
svg { width: 100%; height: auto; } svg text { font: 14px system-ui, sans-serif; fill: var(--ink); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-top: 1px solid var(--line); }
th { color: var(--soft); font-weight: 500; }
th.n, td.n { text-align: right; width: 5rem; font-variant-numeric: tabular-nums; }
.place { white-space: nowrap; }
code { font: .85em ui-monospace, monospace; overflow-wrap: anywhere; }
td { min-width: 4rem; } td:has(> code:first-child) { min-width: 8rem; }
@media (max-width: 44rem) {
  thead { display: none; } table, tbody { display: block; }
  tr { display: flex; flex-wrap: wrap; gap: .1rem .75rem; padding: .6rem 0; border-top: 1px solid var(--line); }
  td, td.n { border: 0; padding: 0; min-width: 0; width: auto; } td.wide { flex-basis: 100%; }
  td.n::after { content: " " attr(data-name); color: var(--soft); }
}
.dropped { color: var(--dropped); fill: var(--dropped); } .degraded { color: var(--degraded); fill: var(--degraded); }
.invented { color: var(--invented); fill: var(--invented); } .noted { color: var(--noted); fill: var(--noted); }
.bar { fill: var(--bar); }
"""


def render_page(report: Report) -> str:
    """Return the whole page."""
    tally = report.tally
    title = f"{tally.converted:,} of {tally.records:,} records converted to {escape(report.target)}"
    where = f"{escape(', '.join(report.sources[:5]))}{_more(len(report.sources) - 5)} → {escape(report.output)}"
    plots = {
        "Losses by severity": _bars([(name, count, name) for name, count in report.by_severity().items()]),
        "Records by format": _bars([(name, count, "bar") for name, count in _by_count(tally.formats)]),
        "Size of converted records": _size_bars(tally.output_sizes),
    }
    return _document(
        title, where, _numbers(report), plots, f"{_losses(tally.losses, tally.converted)}\n{_rejects(report)}"
    )


def render_answers_page(report: InferenceReport, output: str) -> str:
    """Return the page of a file of requests that a model answered."""
    title = f"{report.answered:,} of {report.requests:,} requests answered by {escape(report.model)}"
    numbers = {
        "answered": f"{report.answered:,}",
        "failed": f"{report.failed:,}",
        "from an earlier run": f"{report.resumed:,}",
        "requests sent": f"{report.attempts:,}",
        "input tokens": f"{report.input_tokens:,}",
        "output tokens": f"{report.output_tokens:,}",
        "seconds": f"{report.seconds:,.1f}",
    }
    losses = {severity: report.losses.get(severity, 0) for severity in SEVERITIES}
    plots = {
        "Outcome": _bars([("answered", report.answered, "bar"), ("failed", report.failed, "dropped")]),
        "How answers ended": _bars([(name, count, "bar") for name, count in _by_count(report.finishes)]),
        "Losses by severity": _bars([(name, count, name) for name, count in losses.items()]),
    }
    return _document(
        title, f"→ {escape(output)}", _list(numbers), plots, _losses(report.kinds_of_losses, report.answered)
    )


def _document(title: str, where: str, numbers: str, plots: Mapping[str, str], tables: str) -> str:
    figures = "\n".join(
        f"<figure><figcaption>{caption}</figcaption>{drawing}</figure>" for caption, drawing in plots.items()
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{_STYLE}</style></head><body><main>
<h1>{title}</h1>
<p class="where">{where}</p>
{numbers}
<h2>At a glance</h2>
<div class="plots">
{figures}
</div>
{tables}
</main></body></html>
"""


def _by_count(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda row: (-row[1], row[0]))


def _more(count: int) -> str:
    return f" and {count:,} more" if count > 0 else ""


def _numbers(report: Report) -> str:
    tally = report.tally
    shown = {
        "converted": f"{tally.converted:,}",
        "without any loss": f"{tally.lossless:,}",
        "rejected": f"{tally.rejected:,}",
        "left out": f"{tally.left_out:,}",
        "from an earlier run": f"{report.resumed:,}",
        "read": _bytes(tally.input_sizes.total),
        "written": _bytes(tally.output_sizes.total),
        "tokens reported": f"{tally.input_tokens + tally.output_tokens:,}",
        "tokens in requests, estimated": f"{tally.estimated_tokens:,}",
        "records per second": f"{report.records_per_second:,.0f}",
        "seconds": f"{report.seconds:,.1f}",
        "shards": f"{report.shards:,}",
    }
    for name in ("left out", "from an earlier run", "tokens reported", "tokens in requests, estimated"):
        if shown[name] == "0":
            del shown[name]
    return _list(shown)


def _list(numbers: Mapping[str, str]) -> str:
    return "<dl>" + "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in numbers.items()) + "</dl>"


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < _THOUSAND:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _THOUSAND
    return f"{count:.1f} TB"


def _bars(rows: Sequence[tuple[str, int, str]]) -> str:
    """Return horizontal bars with their numbers. A bar for a nonzero count is always visible."""
    if not any(count for _, count, _ in rows):
        return "<p>none</p>"
    highest = max(count for _, count, _ in rows)
    drawn = []
    begin = min(300, max(170, 8 + 8 * max(len(name) for name, _, _ in rows)))  # a letter is about eight wide
    for index, (name, count, style) in enumerate(rows):
        width = max(2.0, (390 - begin) * count / highest) if count else 0
        y = index * 24
        drawn.append(
            f'<text x="0" y="{y + 15}">{escape(name)}</text>'
            f'<rect class="{style}" x="{begin}" y="{y + 4}" width="{width:.1f}" height="14" rx="2"/>'
            f'<text x="{begin + 5 + width:.1f}" y="{y + 15}">{count:,}</text>'
        )
    label = escape("; ".join(f"{name}: {count:,}" for name, count, _ in rows))
    return f'<svg viewBox="0 0 460 {len(rows) * 24}" role="img" aria-label="{label}">{"".join(drawn)}</svg>'


def _size_bars(sizes: Sizes) -> str:
    units = ("B", "KiB", "MiB", "GiB")
    named = [f"below {1 << bucket % 10} {units[bucket // 10]}" for bucket in range(len(sizes.buckets))]
    rows = [(named[bucket], count, "bar") for bucket, count in enumerate(sizes.buckets) if count]
    return _bars(rows)


def _losses(losses: Sequence[LossCount], converted: int) -> str:
    if not losses:
        return "<h2>Losses</h2><p>None.</p>" if converted else ""
    rows = (
        f'<tr><td class="{loss.severity}">{loss.severity}</td><td><code>{_path(loss.path)}</code></td>'
        f'<td class="wide">{escape(loss.what)}</td><td class="wide">{escape(loss.why)}</td>'
        f"{_number(loss.count, 'times')}{_number(loss.records, 'records')}"
        f'<td class="wide">{_examples(loss.examples)}</td></tr>'
        for loss in losses[:_ROWS]
    )
    heads = ("severity", "where", "what", "why", "times", "records", "for example")
    return f"<h2>Losses</h2>{_table(heads, rows)}{_cut(len(losses))}"


def _rejects(report: Report) -> str:
    rejects = report.tally.rejects
    if not rejects:
        return ""
    rows = (
        f'<tr><td class="wide">{escape(reject.reason)}</td>{_number(reject.count, "records")}'
        f'<td class="wide">{_examples(reject.examples)}</td></tr>'
        for reject in rejects[:_ROWS]
    )
    return f"<h2>Rejected records</h2>{_table(('reason', 'records', 'for example'), rows)}{_cut(len(rejects))}"


def _path(path: str) -> str:
    """Return a JSON path that may break before each key."""
    return escape(path).replace(".", "<wbr>.")


def _number(count: int, name: str) -> str:
    """Return a cell; on a narrow screen, where the table has no header, its name is shown beside the number."""
    return f'<td class="n" data-name="{name.removesuffix("s") if count == 1 else name}">{count:,}</td>'


_COUNTED = frozenset({"times", "records"})
"""Heads of columns with numbers."""


def _table(heads: Iterable[str], rows: Iterable[str]) -> str:
    head = "".join(f'<th class="n">{name}</th>' if name in _COUNTED else f"<th>{name}</th>" for name in heads)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<div class="scroll" tabindex="0">{table}</div>'


def _cut(count: int) -> str:
    return f"<p>{count - _ROWS:,} more are in the JSON report.</p>" if count > _ROWS else ""


def _examples(examples: Sequence[Example]) -> str:
    return "<br>".join(
        f'<code class="place" title="{escape(one.path)}">{escape(one.source.rsplit("/", 1)[-1])}:{one.line}</code>'
        for one in examples
    )
