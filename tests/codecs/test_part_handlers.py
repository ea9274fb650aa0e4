"""Every codec handles every type of part: its tables are complete."""

from importlib import import_module
from typing import Any, get_args

import pytest

from dragoman import ir
from dragoman.codecs.part_handlers import PART_TYPES, PartHandlers
from dragoman.codecs.registry import folder_of
from tests.support.formats import FORMATS
from tests.support.promises import promise

pytestmark = promise("core:every-part-handled")

PARTS = set(get_args(ir.AnyPart))
FOLDERS = sorted({folder_of(name) for name in FORMATS})


def test_the_table_has_one_handler_per_part_type() -> None:
    assert set(PART_TYPES.values()) == PARTS
    assert tuple(PART_TYPES) == PartHandlers.__struct_fields__
    assert {tag: kind.__struct_config__.tag for tag, kind in PART_TYPES.items()} == {tag: tag for tag in PART_TYPES}


def tables(folder: str) -> list[dict[Any, Any]]:
    """Dictionaries from part types to functions, of the codec's modules and their classes."""
    modules = [import_module(f"dragoman.codecs.{folder}.{name}") for name in ("parts", "messages")]
    classes = [item for module in modules for item in vars(module).values() if isinstance(item, type)]
    found = [item for owner in (*modules, *classes) for item in vars(owner).values() if isinstance(item, dict)]
    return [table for table in found if len(PARTS & set(table)) > 5 and all(map(callable, table.values()))]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_codec_writes_every_type_of_part(folder: str) -> None:
    found = tables(folder)
    assert found
    for table in found:
        assert set(table) >= PARTS
