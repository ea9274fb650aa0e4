"""The documentation site: `make docs` builds it into build/docs."""

from __future__ import annotations

import inspect
import os
import re
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes

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
autodoc_default_options = {"members": True}
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


# Pages of the site that show a page of the repository outside of docs/.
_SHOWN = {
    "deployment": "deploy/README.md",
    "benchmarks": "benchmarks/README.md",
    "security": "SECURITY.md",
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "releasing": "RELEASING.md",
}
_PAGE_OF = {_ROOT / path: f"{name}.md" for name, path in _SHOWN.items()} | {_ROOT / "README.md": "index.md"}
_LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)#\s]+)")
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
    docs = Path(app.srcdir).resolve()
    file = docs / f"{name}.md"
    if name in _SHOWN:
        file = _ROOT / _SHOWN[name]
        source[0] = file.read_text(encoding="utf-8")

    def link(match: re.Match[str]) -> str:
        target = (file.parent / match[1]).resolve()
        found = docs / _PAGE_OF[target] if target in _PAGE_OF else target
        return os.path.relpath(found, (docs / name).parent) if found.exists() else match[0]

    source[0] = _LINK.sub(link, source[0])
    if name == "decisions/README":
        source[0] += _ALL_DECISIONS
    if name == "api":
        source[0] = re.sub(r"```\{public-names\} (\S+)\n```", _public_names, source[0])
    if name == "index":
        listed = set(re.findall(r"^[a-z-]+$", source[0], re.MULTILINE))
        others = sorted({file.stem for file in Path(app.srcdir).glob("*.md")} - listed - {"index"})
        source[0] += _FURTHER.format("\n".join(others)) if others else ""


def _as_text(match: re.Match[str]) -> str:
    found = match[0]
    return f"``{found.strip('`')}``" if found[0] == "`" else f"\\{found}"


def _read_docstring(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:  # noqa: ARG001 - the signature is Sphinx's
    """Docstrings are plain text with code between backticks, not reStructuredText."""
    is_program = False  # from a prompt to the next empty line
    for number, line in enumerate(lines):
        is_program = line.startswith(">>>") or (is_program and line != "")
        if not is_program and not line.startswith("    "):
            lines[number] = _MARK.sub(_as_text, line)


# A kind of name: its heading, its directive, and whether a value is of that kind.
_KINDS: tuple[tuple[str, str, Callable[[object], bool]], ...] = (
    ("Functions", "autofunction", inspect.isroutine),
    ("Classes", "autoclass", lambda value: isinstance(value, type) and not issubclass(value, BaseException)),
    ("Errors", "autoexception", lambda value: isinstance(value, type) and issubclass(value, BaseException)),
)


def _public_names(match: re.Match[str]) -> str:
    """The names of a module by their kind. A name of the front door is described there and nowhere else."""
    name = match[1]
    module = import_module(name)
    names = module.__all__ if module is dragoman else set(module.__all__) - set(dragoman.__all__)
    members = {member: getattr(module, member) for member in names}
    text = ""
    for heading, directive, is_of_kind in _KINDS:
        found = sorted(member for member, value in members.items() if is_of_kind(value))
        if found:
            lines = "\n".join(f".. {directive}:: {name}.{member}" for member in found)
            text += f"### {heading}\n\n```{{eval-rst}}\n{lines}\n```\n\n"
    return text


_ONE_LINE = 26  # characters: what fits beside another column on a phone


def _keep_short_code_together(app: Sphinx, tree: nodes.document) -> None:  # noqa: ARG001 - the signature is Sphinx's
    """A browser would break `--output-format` after its first hyphen."""
    for literal in tree.findall(nodes.literal):
        if len(literal.astext()) <= _ONE_LINE:
            literal["classes"].append("short")


def setup(app: Sphinx) -> None:
    app.connect("source-read", _read_page)
    app.connect("doctree-read", _keep_short_code_together)
    app.connect("autodoc-process-docstring", _read_docstring)
