"""The documentation site: it builds without a warning, no link is broken, its programs print what is shown."""

from __future__ import annotations

import asyncio
import html.parser
import importlib.util
import json
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import dragoman
from dragoman.fidelity.judging import VERDICTS
from tests.support.browser import browser, tab
from tests.support.not_tried import NOT_TRIED
from tests.support.promises import promise

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# The programs of the other pages are run by tests of what they describe.
PAGES = ("index.md", "quickstart.md", "installation.md", "formats.md", "faq.md", "not-supported.md", "comparison.md")
_BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if any(importlib.util.find_spec(name) is None for name in ("sphinx", "myst_parser", "furo")):
        pytest.skip(
            f"{NOT_TRIED} the documentation site (Sphinx, MyST and Furo of requirements.lock are not installed)"
        )
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going", "-d", str(target / "trees")]
    built = subprocess.run(  # noqa: S603 - our own pages
        [*command, str(DOCS), str(target / "html")], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr[-3000:]
    return target / "html"


class _Page(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - the signature is given
        for name, value in attrs:
            if name in {"href", "src"} and value:
                self.links.append(value)
            elif name == "id" and value:
                self.anchors.add(value)


@promise("front:site")
def test_the_site_builds_and_no_link_is_broken(site: Path) -> None:
    pages = {file: _Page(file.read_text(encoding="utf-8")) for file in site.rglob("*.html")}
    lost = []
    for file, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (file.parent / unquote(address.path)).resolve() if address.path else file
            anchors = pages[target].anchors if target in pages and address.fragment else {unquote(address.fragment)}
            if not target.exists() or unquote(address.fragment) not in anchors:
                lost.append(f"{file.name}: {link}")
    assert lost == []
    assert {"index.html", "quickstart.html", "api.html", "search.html"} <= {file.name for file in pages}


# Hosts that the pages link to. They are not contacted: the test checks the form of a link, and that its host is known.
HOSTS = frozenset(
    {
        "agentgateway.dev", "ai.pydantic.dev", "dev.to", "docs.getbifrost.ai", "docs.litellm.ai",
        "docsearch.algolia.com", "github.com", "glama.ai", "opentelemetry.io", "portkey.ai", "pypi.org",
        "raw.githubusercontent.com", "www.mintlify.com", "www.npmjs.com",
    }
)  # fmt: skip
_EXTERNAL = re.compile(r"\]\((https?://[^)\s]*)\)")


@promise("front:site")
def test_links_to_other_sites_are_well_formed_and_lead_to_known_hosts() -> None:
    pages = [*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / name / "README.md" for name in ("deploy", "examples"))]
    wrong, seen = [], set()
    for page in (*pages, ROOT / "benchmarks" / "README.md"):
        found = _EXTERNAL.findall(page.read_text(encoding="utf-8"))
        seen |= {urlsplit(address).hostname for address in found}
        repeated = [address for address, times in Counter(found).items() if times > 1]
        wrong += [f"{page.name}: {address} twice" for address in repeated]
        for address in found:
            parts = urlsplit(address)
            if (
                parts.scheme != "https"
                or parts.hostname not in HOSTS
                or address.endswith((".", ",", ";"))
                or parts.port
            ):
                wrong.append(f"{page.name}: {address}")
    assert wrong == []
    assert seen == HOSTS


_STATUS = re.compile(
    r"# (\d+)\. .+\n\n\*\*Date:\*\* \d{4}-\d\d-\d\d\n\n\*\*Status:\*\* (accepted|replaced by \[\d+\]\((.+?)\))"
)
_SECTIONS = frozenset({"What was needed", "What was chosen"})
_REPORT = "0026-two-more-formats.md"


@promise("front:site")
def test_every_decision_has_a_number_a_date_a_status_and_the_usual_sections() -> None:
    for file in sorted((DOCS / "decisions").glob("0*.md")):
        text = file.read_text("utf-8")
        head = _STATUS.match(text)
        assert head is not None, file.name
        assert file.name.startswith(f"{int(head[1]):04}-")
        assert head[3] is None or (file.parent / head[3]).exists(), file.name
        headings = set(re.findall(r"^## (.+)$", text, re.MULTILINE))
        assert headings >= _SECTIONS or file.name == _REPORT, file.name


@promise("front:site")
def test_no_page_is_wider_than_a_phone(site: Path) -> None:
    files = sorted(site.rglob("*.html"))

    async def look(address: str) -> list[str]:
        wide = []
        async with tab(address) as page:
            await page.size(390, 844, phone=True)
            for file in files:
                await page.command("Page.navigate", url=file.as_uri())
                await page.until(f"document.readyState === 'complete' && location.pathname.endsWith('/{file.name}')")
                if await page.js("document.documentElement.scrollWidth > innerWidth"):
                    wide.append(file.name)
            assert page.problems == []
        return wide

    with browser() as address:
        assert asyncio.run(look(address)) == []


@promise("front:site")
def test_the_reference_has_every_public_name(site: Path) -> None:
    anchors = _Page((site / "api.html").read_text(encoding="utf-8")).anchors
    values = {name for name in dragoman.__all__ if callable(getattr(dragoman, name)) and not name.startswith("_")}
    documented = {anchor.rpartition(".")[2] for anchor in anchors}
    # Unions and literals are described where they are used.
    classes = {name for name in values if isinstance(getattr(dragoman, name), type) or name[0].islower()}
    assert sorted(classes - documented) == []


def _run(program: str) -> str:
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)  # noqa: S603
    return ended.stdout if ended.returncode == 0 else ended.stderr


@promise("front:site")
def test_every_program_is_complete_and_prints_what_the_page_says() -> None:
    programs: list[tuple[str, str, str | None]] = []
    for page in PAGES:
        for language, text in _BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
            if language == "python":
                programs.append((page, text, None))
            elif language == "text":
                programs[-1] = (*programs[-1][:2], text)
    assert len(programs) >= 8
    with ThreadPoolExecutor(3) as pool:
        printed = list(pool.map(_run, [program for _, program, _ in programs]))
    for (page, program, expected), output in zip(programs, printed, strict=True):
        assert expected is not None, (page, program)
        assert output == expected, (page, program)


@promise("front:site")
def test_the_comparison_has_the_measured_numbers() -> None:
    """If this fails: run `make fidelity`."""
    measured = json.loads((DOCS / "fidelity-peers.json").read_text(encoding="utf-8"))
    text = (DOCS / "comparison.md").read_text(encoding="utf-8")
    assert f"Measured on {measured['date']}:" in text
    for one in measured["interpreters"]:
        verdicts = Counter(
            verdict
            for features in one["rows"].values()
            for sources in features.values()
            for targets in sources.values()
            for verdict in targets.values()
        )
        numbers = [verdicts.total(), *(verdicts[name] for name in VERDICTS)]
        assert f"| {one['name']} {one['version']} | {' | '.join(map(str, numbers))} |" in text


@promise("front:site")
def test_every_format_is_on_the_page_of_formats() -> None:
    text = (DOCS / "formats.md").read_text(encoding="utf-8")
    named = text + (DOCS / "record-formats.md").read_text(encoding="utf-8")
    assert [name for name in dragoman.formats(None) if f"`{name}`" not in named] == []
    assert f"{len(dragoman.formats('dataset'))} formats of [training data" in text
