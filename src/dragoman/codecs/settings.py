"""The settings of a request: one table per codec, and the code that follows from it.

A row states where a field of `Request` is on the wire, how it is read and how it is written. From the rows, functions
are generated once, when the codec is imported: one builds the `Request` from the wire struct, another builds the wire
struct from the `Request`. Straight-line code costs a fifth of a loop over the rows, and a call with twenty keyword
arguments costs more than the rest of a small request, so the generated calls are positional but for a few at the end.

What follows by construction: a field of `Request` that has no row in a codec is reported as a loss whenever it is
set; a documented wire key without a field (`collect_keys`) is kept as metadata, returns to the same family, and is a
loss for others; the JSON path of a setting comes from its row. So a new setting is a field of `Request` and a row in
each codec whose API has it.

A row whose key is not a member of the wire struct is *beside* it: the setting is rare, and its key is one of those
that are collected as exact JSON. Reading takes it out of them, writing puts it there, and a body without it pays
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final, TypeAlias, get_type_hints

import msgspec
from msgspec import NODEFAULT, UNSET, Raw, Struct

from dragoman.codecs.generated_code import compile_function
from dragoman.codecs.reading import WireValue
from dragoman.codecs.wire_values import Wire
from dragoman.ir import Request
from dragoman.ir.notes import RENAMED, WITHIN, Extra, inner_extra
from dragoman.ir.values import Metadata, encode_json, parse_json
from dragoman.losses import LossLog

Reader: TypeAlias = Callable[[Any], Any]
Writer: TypeAlias = Callable[[Any, Request, LossLog], WireValue]


class _ByHand:
    """Marks a value that the codec computes itself and passes to the generated function as an argument."""


BY_HAND: Final = _ByHand()

CONTENT = ("messages", "tools", "metadata", "origin")
"""Fields of a request that are not settings."""


class Setting(Struct, frozen=True):
    """One row: a field of `Request` and its place on the wire."""

    field: str
    key: str | None = ""
    """The member of the wire struct; the field's own name by default. None: part of another row's member. A name that
    is not a member is the JSON key beside the struct, with dots if it is inside other objects."""
    read: Reader | _ByHand | None = None
    """Wire value -> value; None: the same. Called only if the wire has the key. For a key beside the struct the wire
    value is parsed JSON, and a value of None leaves the key in the metadata."""
    write: Writer | _ByHand | None = None
    """(value, request, log) -> wire value; None: the same. Called only if the field is set. UNSET: not written."""
    path: str = ""
    """The JSON path below the root; the key by default."""
    lost: str = ""
    """Why the API does not take the field, if the reason is not `NO_SUCH_SETTING`."""
    anyway: Any = None
    """A value that the API always uses, so that it is not a loss."""

    @property
    def member(self) -> str | None:
        return self.field if self.key == "" else self.key


NAMES = {
    "min_p": "min_p",
    "top_k": "top_k",
    "top_p": "top_p",
    "tool_choice": "tool choice",
    "parallel_tool_calls": "switch for parallel calls",
    "output": "structured output",
    "stop": "stop sequences",
    "cache": "automatic cache mark",
    "reasoning": "reasoning settings",
    "user": "end user's id",
}
"""Names of settings in losses; others use the field name."""

SETTING_NAMES = {
    name: NAMES.get(name, name.replace("_", " ")) for name in Request.__struct_fields__ if name not in CONTENT
}
"""Every setting of a request, with its name in losses."""

NO_SUCH_SETTING = "this API has no such setting"


class Settings:
    """The settings of one wire format, as generated functions and paths."""

    def __init__(
        self,
        wire: type[Wire],
        family: str,
        rows: Sequence[Setting],
        *,
        content: Sequence[str] = ("messages", "tools"),
        alias: Callable[[str], str] = str,
    ) -> None:
        """`content` are the members of the wire struct that are not settings; the codec passes them to `write`.

        `alias` returns another spelling that a key beside the struct may have.
        """
        self._wire = wire
        self._family = family
        self._rows = {row.field: row for row in rows}
        self._content = tuple(content)
        keys = dict(zip(wire.__struct_fields__, wire.__struct_encode_fields__, strict=True))
        written = {keys.get(str(member)) for member in (*content, *(row.member for row in rows))}
        self._beside = tuple(
            _Beside(row, written, alias) for row in rows if row.member is not None and row.member not in keys
        )
        self._paths = {row.field: f"$.{row.path or row.member}" for row in rows if row.path or row.member}
        self.read = self._generate(self._read_source())
        """(wire, messages, tools, metadata, fields by hand…) -> Request"""
        self.write = self._generate(self._write_source())
        """(request, log, content…, members by hand…) -> wire struct"""
        self.add_keys = self._generate(self._add_keys_source())
        """(request, log, extra) -> the keys beside the struct: `extra` and those of settings that are set"""

    def path(self, field: str) -> str:
        """Return the JSON path of a setting, or of a key that was passed on."""
        head, dot, rest = field.partition(".")
        return self._paths.get(field) or (self._paths.get(head, f"$.{head}") + dot + rest if head else "$")

    @property
    def keys_beside(self) -> Mapping[str, str]:
        """Settings beside the struct: field -> key, with dots if it is inside other objects."""
        return {row.field: row.key for row in self._beside}

    @property
    def read_by_hand(self) -> tuple[str, ...]:
        return tuple(row.field for row in self._rows.values() if row.read is BY_HAND)

    @property
    def written_by_hand(self) -> tuple[str, ...]:
        """Members of the wire struct that the codec passes to `write`, after the content."""
        members = [row.member for row in self._rows.values() if row.write is BY_HAND]
        return tuple(dict.fromkeys(member for member in members if member is not None))

    # ── generated code ──

    def _generate(self, source: str) -> Callable[..., Any]:
        names: dict[str, Any] = {"Request": Request, "WireStruct": self._wire, "FAMILY": self._family}
        for row in self._rows.values():
            names[f"read_{row.field}"] = row.read
            names[f"write_{row.field}"] = row.write
        names["BESIDE"] = frozenset(key for row in self._beside for key in row.found_by)
        names["take_keys"], names["put_keys"] = self._take_keys, self._put_keys
        return compile_function(source, f"settings of {self._wire.__name__}", names)

    def _read_source(self) -> str:
        values = {name: self._read_value(name, default) for name, default in _defaults(Request).items()}
        arguments = _short_arguments(values, {row.field for row in self._beside})
        given = ", ".join(("wire", "messages", "tools", "metadata", *self.read_by_hand))
        if not self._beside:
            return f"def generated({given}):\n    return Request({arguments})\n"
        return (
            f"def generated({given}):\n"
            "    if metadata is not None and not BESIDE.isdisjoint(metadata[FAMILY]):\n"
            "        metadata, found = take_keys(metadata[FAMILY])\n"
            f"        return Request({arguments}, **found)\n"
            f"    return Request({arguments})\n"
        )

    def _read_value(self, field: str, default: Any) -> str:
        if field in CONTENT:
            return "FAMILY" if field == "origin" else field
        row = self._rows.get(field)
        if row is None or (row.read is None and row.member is None):
            return repr(default)
        if row.read is BY_HAND:
            return field
        if row.member not in self._wire.__struct_fields__:
            return repr(default)  # beside the struct: most requests do not have it
        absent = _absent(_defaults(self._wire)[str(row.member)])
        if row.read is None:
            return (
                f"wire.{row.member}"
                if absent == "None"
                else f"None if wire.{row.member} is {absent} else wire.{row.member}"
            )
        return f"{default!r} if wire.{row.member} is {absent} else read_{field}(wire.{row.member})"

    def _write_source(self) -> str:
        by_member = {row.member: row for row in self._rows.values() if row.member is not None}
        arguments = []
        for member, default in _defaults(self._wire).items():
            if member == "extra":
                continue
            row = by_member.get(member)
            if member in self._content or (row is not None and row.write is BY_HAND):
                arguments.append(member)
            elif row is None:
                arguments.append(_absent(default))
            else:
                arguments.append(self._write_value(row, _absent(default)))
        given = ", ".join(("request", "log", *self._content, *self.written_by_hand))
        lost = [name for name in SETTING_NAMES if self._why_lost(name)]
        losses = "".join(
            f"        if {_is_set(name)}{self._unless(name)}:\n"
            f"            log.drop(request, {name!r}, {SETTING_NAMES[name]!r}, {self._why_lost(name)!r})\n"
            for name in lost
        )
        check = f"    if {_is_any_set(lost)}:\n{losses}" if lost else ""
        return f"def generated({given}):\n{check}    return WireStruct({', '.join(arguments)})\n"

    def _add_keys_source(self) -> str:
        fields = [row.field for row in self._beside]
        check = f"    if {_is_any_set(fields)}:\n        return put_keys(request, log, extra)\n" if fields else ""
        return f"def generated(request, log, extra):\n{check}    return extra\n"

    def _why_lost(self, field: str) -> str:
        """Return why a field cannot be written; empty for one that can."""
        row = self._rows.get(field)
        return NO_SUCH_SETTING if row is None else row.lost

    def _unless(self, field: str) -> str:
        """Return a condition that excludes the value that the API always uses, which is not a loss."""
        row = self._rows.get(field)
        return "" if row is None or row.anyway is None else f" and request.{field} != {row.anyway!r}"

    # ── keys beside the struct ──

    def _take_keys(self, extra: Extra) -> tuple[Metadata | None, dict[str, Any]]:
        """Return the metadata without the keys of settings, and the settings beside the struct that have one."""
        rest = dict(extra)
        is_absent = rest.keys().isdisjoint
        found = {row.field: row.take(rest) for row in self._beside if not is_absent(row.found_by)}
        metadata: Metadata | None = {self._family: rest} if rest else None
        return metadata, found

    def _put_keys(self, request: Request, log: LossLog, extra: Extra | None) -> Extra:
        keys = dict(extra or {})
        for row in self._beside:
            if getattr(request, row.field) != row.default:
                row.put(keys, request, log)
        return keys

    def _write_value(self, row: Setting, absent: str) -> str:
        if row.write is None and absent == "None":
            return f"request.{row.field}"
        value = f"request.{row.field}"
        written = value if row.write is None else f"write_{row.field}({value}, request, log)"
        return f"{written} if {_is_set(row.field)} else {absent}"


class _Beside:
    """A row whose key is not a member of the wire struct."""

    __slots__ = ("_alias", "_decode", "_is_within", "_key", "_outer", "_write", "default", "field", "found_by", "key")

    def __init__(self, row: Setting, written: Container[str | None], alias: Callable[[str], str]) -> None:
        """`written` are the keys that the codec writes itself; other members of such an object are kept in notes."""
        self.field, self.key = row.field, str(row.member)
        self.default = _defaults(Request)[row.field]
        self._outer, _, self._key = self.key.rpartition(".")
        self._alias = alias(self._key)
        self._is_within = self._outer in written
        self.found_by = (self._place,) if self._outer else (self._key, self._alias)
        """The metadata keys that hold the setting, alone or with its neighbours."""
        self._write: Any = row.write
        read: Any = row.read
        kind = get_type_hints(Request)[row.field]
        self._decode = msgspec.json.Decoder(kind).decode if read is None else lambda raw: read(parse_json(raw))

    @property
    def _place(self) -> str:
        return WITHIN + self._outer if self._is_within else self._outer

    def take(self, extra: Extra) -> Any:
        """Remove the setting from `extra` and return its value; the default if it is absent or of another type."""
        keys = self._keys(extra) if self._outer else extra
        key = self._key if self._key in keys else self._alias
        raw = keys.get(key)
        if raw is None:
            return self.default
        try:
            value = self._decode(raw)
        except msgspec.ValidationError:
            return self.default
        if value in _EMPTY_VALUES:
            return self.default
        del keys[key]
        if key != self._key:
            keys[RENAMED + self._key] = Raw(encode_json(key))
        if self._outer:
            self._store(extra, keys)
        return value

    def put(self, extra: Extra, request: Request, log: LossLog) -> None:
        value = getattr(request, self.field)
        if self._write is not None:
            value = self._write(value, request, log)
        if value is UNSET:
            return
        keys = self._keys(extra) if self._outer else extra
        keys[self._alias if RENAMED + self._key in keys else self._key] = Raw(encode_json(value))
        if self._outer:
            self._store(extra, keys)

    def _keys(self, extra: Extra) -> Extra:
        if self._is_within:
            return inner_extra(extra, self._outer) or {}
        try:
            return _entries(extra[self._outer]) if self._outer in extra else {}
        except msgspec.ValidationError:
            return {}

    def _store(self, extra: Extra, keys: Extra) -> None:
        if keys:
            extra[self._place] = Raw(encode_json(keys))
        else:
            del extra[self._place]


_entries = msgspec.json.Decoder(dict[str, Raw]).decode
_EMPTY_VALUES: tuple[Any, ...] = (None, (), {})


def _is_set(field: str) -> str:
    return f"request.{field} is not None" if _defaults(Request)[field] is None else f"request.{field}"


def _is_any_set(fields: Sequence[str]) -> str:
    """Return one condition for all fields, so that a request that sets none checks only once."""
    return " or ".join(map(_is_set, fields))


def collect_keys(wire: type[Wire], names: Sequence[str] | Mapping[str, str]) -> Callable[[Any], Extra | None]:
    """Return a function from a wire struct to its extras and its passed-on members, or None if it has none.

    The caller owns the returned dictionary. `names` may map members to the keys under which they are kept.
    """
    defaults = _defaults(wire)
    keys = dict(zip(wire.__struct_fields__, wire.__struct_encode_fields__, strict=True))
    if isinstance(names, Mapping):
        keys.update(names)
    # Most objects have none of these keys, so one condition for all comes first. The interpreter compares fastest with
    # a local name or None: a chain (`a is b is UNSET`) takes a third longer, with None twice as long.
    absent = {name: "None" if defaults[name] is not UNSET else "unset" for name in names}
    checks = " and ".join(["wire.extra is unset", *(f"wire.{name} is {absent[name]}" for name in names)])
    lines = ["def generated(wire):", "    unset = UNSET", f"    if {checks}:"]
    lines += ["        return None", "    extra: dict[str, Any] = {} if wire.extra is unset else dict(wire.extra)"]
    for name in names:
        lines += [f"    if wire.{name} is not {absent[name]}:", f"        extra[{keys[name]!r}] = wire.{name}"]
    return compile_function("\n".join([*lines, "    return extra or None\n"]), f"keys of {wire.__name__}", {})


def _short_arguments(values: Mapping[str, str], beside: Container[str]) -> str:
    """Return the arguments for `Request`, by position or by keyword, without those `beside` and trailing defaults.

    The interpreter passes up to 30 arguments directly, where a keyword counts twice. More of them go through a list and
    a tuple, which costs more than making the struct: a request of 35 fields took 900 ns instead of 200.
    """
    fields = list(_defaults(Request).items())
    most = next((index for index, (name, _) in enumerate(fields) if name in beside), len(fields))

    def split(at: int) -> tuple[list[str], list[str]]:
        named = [f"{name}={values[name]}" for name, default in fields[at:] if values[name] != repr(default)]
        return [values[name] for name, _ in fields[:at]], named

    positions, named = min(map(split, range(most + 1)), key=lambda halves: len(halves[0]) + 2 * len(halves[1]))
    return ", ".join([*positions, *named])


def _absent(default: Any) -> str:
    return "UNSET" if default is UNSET else "None"


def _defaults(kind: type[Struct]) -> dict[str, Any]:
    """Return the fields in the order of positional arguments, with their defaults."""
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    return dict(zip(names, (NODEFAULT,) * (len(names) - len(defaults)) + tuple(defaults), strict=True))
