"""The documentation site: `make docs` builds it into build/docs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dragoman

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_ROOT = Path(__file__).resolve().parent.parent

project = "dragoman"
author = "dragoman contributors"
release = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
version = release
copyright = "dragoman contributors, Apache-2.0"  # noqa: A001 - Sphinx wants this name

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["pictures", "intermediate-format.schema.json"]

# ── Markdown ──
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]

# ── the reference ──
autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "imported-members": True}
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
add_module_names = False

# ── how it looks ──
html_theme = "furo"
html_title = f"dragoman {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"

_MARK = re.compile(r"`+[^`]*`+|[*|\\]|(?<=\w)_(?=\W|$)")


# Pages of the repository that stand outside of docs/, and the pages of the site that show them.
_SHOWN_AS = {
    "../deploy/README.md": "deployment.md",
    "../benchmarks/README.md": "benchmarks.md",
    "../SECURITY.md": "security.md",
    "../CHANGELOG.md": "changelog.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../RELEASING.md": "releasing.md",
    "../README.md": "index.md",
}
_ALL_DECISIONS = """
```{toctree}
:glob:
:maxdepth: 1

0*
```
"""


# Pages that no table of contents on the first page has.
_FURTHER = """
```{{toctree}}
:hidden:
:caption: Further

{}
```
"""


def _read_page(app: Sphinx, name: str, source: list[str]) -> None:
    """Pages are written to be read in the repository too: links that leave docs/ lead to the site's copy here."""
    for outside, page in _SHOWN_AS.items():
        source[0] = source[0].replace(f"]({outside}", f"]({page}")
    if name == "decisions/README":
        source[0] += _ALL_DECISIONS
    if name == "index":
        listed = set(re.findall(r"^[a-z-]+$", source[0], re.MULTILINE))
        others = sorted({file.stem for file in Path(app.srcdir).glob("*.md")} - listed - {"index"})
        source[0] += _FURTHER.format("\n".join(others)) if others else ""


def _as_text(match: re.Match[str]) -> str:
    found = match[0]
    return f"``{found.strip('`')}``" if found[0] == "`" else f"\\{found}"


def _read_docstring(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:  # noqa: ARG001 - the signature is Sphinx's
    """Docstrings are plain text with code between backticks, not reStructuredText."""
    lines[:] = [line if line.startswith("    ") else _MARK.sub(_as_text, line) for line in lines]


def _skip_repeated(app: Sphinx, what: str, name: str, obj: object, skip: bool, options: Any) -> bool | None:  # noqa: ARG001, FBT001 - the signature is Sphinx's
    """A name of the front door is described there and nowhere else."""
    module = app.env.temp_data.get("autodoc:module")
    if what == "module" and module not in {None, "dragoman"} and name in dragoman.__all__:
        return getattr(dragoman, name, None) is obj or None
    return None


def setup(app: Sphinx) -> None:
    app.connect("source-read", _read_page)
    app.connect("autodoc-process-docstring", _read_docstring)
    app.connect("autodoc-skip-member", _skip_repeated)
