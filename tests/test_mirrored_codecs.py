"""Codec folders are the same inside: the same public functions and classes in files of the same name.

Today's differences are listed in mirrored_names.json (written by `python scripts/mirrored_names.py`), and the list may
only get shorter. Also here: the number of public names, so that none becomes public by accident.
"""

import json
from importlib import import_module
from pathlib import Path

import pytest

from dragoman import codecs
from tests.support.mirrored import FOLDERS, differences
from tests.support.promises import promise

LISTED: dict[str, list[str]] = json.loads(Path(__file__).with_name("mirrored_names.json").read_text())
MOST_DIFFERENCES = 138
"""The most names that may be listed. Lower it when codecs become more alike; never raise it."""

# Package -> the number of names that it exports. To export one more, raise the number on purpose.
EXPORTED: dict[str, int] = {
    "dragoman": 105,
    "dragoman.ir": 62,
    "dragoman.schema": 14,
    "dragoman.drivers": 20,
    "dragoman.agent": 76,
    "dragoman.chat.stores": 10,
    "dragoman.sim": 5,
    "dragoman.testing": 4,
}


@promise("core:mirrored-codecs")
def test_what_differs_between_codec_folders_is_listed() -> None:
    """If this fails: give the name an underscore, give it to every folder, or run scripts/mirrored_names.py."""
    assert differences() == LISTED


@promise("core:mirrored-codecs")
def test_the_list_gets_no_longer() -> None:
    assert len(FOLDERS) >= 6
    assert sum(map(len, LISTED.values())) <= MOST_DIFFERENCES


@promise("core:mirrored-codecs")
@pytest.mark.parametrize("folder", ["gemini_interactions", "cohere_chat"])
def test_a_format_added_later_stays_small(folder: str) -> None:
    """Code that formats share belongs beside their folders (docs/decisions/0026-two-more-formats.md)."""
    sources = (Path(codecs.__file__).parent / folder).glob("*.py")
    assert sum(len(source.read_text(encoding="utf-8").splitlines()) for source in sources) <= 3_500


@promise("core:public-surface")
@pytest.mark.parametrize("package", EXPORTED)
def test_no_name_becomes_public_by_accident(package: str) -> None:
    names = import_module(package).__all__
    assert len(names) <= EXPORTED[package], sorted(names)
    assert not [name for name in names if name.startswith("_") and name != "__version__"]
