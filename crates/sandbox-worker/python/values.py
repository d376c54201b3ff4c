"""The JSON form of what agent code left in `result`.

Loaded as `traderharness_values`. Every value is looked at by its real type, never by what it says of itself, and containers are walked
with the methods of their built-in base, so that classes of the agent run none of their code here.

| value | JSON |
|---|---|
| None, NaN, infinities, pandas NA and NaT | null |
| bool, numpy bool | true, false |
| int, numpy integers | number; a string of digits outside 64 bits, where readers would lose digits |
| float, numpy floats | number with the shortest digits of its own width |
| Decimal | number when a float has exactly its value, else a string |
| str | string; a lone surrogate is refused |
| date, time, Timestamp, datetime64 | ISO text; only the day where all values at hand are midnights |
| timedelta, Timedelta, Period, Interval | text as Python prints it |
| list, tuple, range, deque, dict views | array |
| set, frozenset | array ordered by type name, then value |
| dict | object; keys that are no strings as `str()` writes their plain value |
| numpy array | nested arrays; fields of a structured one as objects |
| Series, with an unnamed index of whole numbers | array |
| Series, with any other index | object of labels to values |
| DataFrame | array of one object per row; the index is left out when it is unnamed whole numbers, else its levels come first |
| Index, Categorical and other pandas arrays | array |
| bytes, complex, everything else | refused with the type and a way out |
"""

import collections
import datetime
import decimal
import json
import math

import numpy as np
import pandas as pd

__all__ = ["Unserialisable", "to_json"]

# Containers in containers; what is deeper is hard to read for anybody.
MAX_DEPTH = 32
# Whole numbers that every reader keeps exactly.
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
# A number of more bits is a mistake, and writing its digits takes longer than computing it.
_BITS = 4096

_dumps = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False).encode
_MISSING = (type(None), type(pd.NA), type(pd.NaT))
_VIEWS = (type({}.keys()), type({}.values()), type({}.items()))


class Unserialisable(Exception):
    """A value without a JSON form: `path` says where it is, `type_name` what it is, `hint` what to do."""

    def __init__(self, path, type_name, hint):
        super().__init__(f"{path} is of type {type_name}: {hint}")
        self.path = path
        self.type_name = type_name
        self.hint = hint


def to_json(value, max_bytes):
    """JSON text of a value, at most `max_bytes` bytes of UTF-8. Raises Unserialisable."""
    walk = _Walk(max_bytes)
    text = _dumps(walk.plain(value, "result", 0))
    if len(text) * 4 > max_bytes and len(text.encode()) > max_bytes:
        raise walk.too_long(type(value))
    return text


def _name(kind):
    # `type.__dict__` looks past a metaclass that answers in its own way.
    name = type.__dict__["__name__"].__get__(kind)
    module = type.__dict__["__module__"].__get__(kind)
    return name if module in ("builtins", "__main__") or type(module) is not str else f"{module}.{name}"


def _is(kind, base):
    return base in type.__dict__["__mro__"].__get__(kind)


class _Walk:
    def __init__(self, max_bytes):
        self.max_bytes = max_bytes
        self.left = max_bytes
        self.open = set()

    def too_long(self, kind):
        # The whole is too long; the place where the count ran out says nothing.
        return Unserialisable(
            "result",
            _name(kind),
            f"result is longer than {self.max_bytes} bytes as JSON: keep fewer rows (.head(50)), fewer columns or an aggregate, "
            "or write the whole to a file of the workspace",
        )

    def spend(self, count, kind):
        self.left -= count
        if self.left < 0:
            raise self.too_long(kind)

    def plain(self, value, path, depth):
        kind = type(value)
        if kind in _SCALARS:
            return _SCALARS[kind](self, value, path)
        if kind in _MISSING:
            self.spend(4, kind)
            return None
        if depth > MAX_DEPTH:
            raise Unserialisable(path, _name(kind), f"more than {MAX_DEPTH} containers are inside one another: flatten the value")
        for base, write in _CONTAINERS:
            if _is(kind, base):
                if id(value) in self.open:
                    raise Unserialisable(path, _name(kind), "the value contains itself: return a copy without the circle")
                self.open.add(id(value))
                try:
                    return write(self, value, path, depth + 1)
                finally:
                    self.open.discard(id(value))
        for base, write in _BASES:
            if _is(kind, base):
                return write(self, value, path)
        raise Unserialisable(path, _name(kind), _hint(kind))

    # Single values.

    def boolean(self, value, path):
        self.spend(4, bool)
        return True if value else False

    def whole(self, value, path):
        value = int.__int__(value)
        if value.bit_length() > _BITS:
            raise Unserialisable(path, "int", f"the number has more than {_BITS} bits: return its logarithm or its digits as text")
        text = int.__repr__(value)
        self.spend(len(text), int)
        return value if _SMALLEST <= value <= _LARGEST else text

    def real(self, value, path):
        value = float.__pos__(value)
        self.spend(4, float)
        return value if math.isfinite(value) else None

    def text(self, value, path):
        value = str.__str__(value)
        if not value.isascii():
            try:
                self.spend(len(value.encode()), str)
            except UnicodeEncodeError:
                raise Unserialisable(
                    path, "str", "the text holds a lone surrogate, which no encoding has: use text.encode('utf-8', 'replace').decode()"
                ) from None
        else:
            self.spend(len(value) + 2, str)
        return value

    def decimal(self, value, path):
        if not decimal.Decimal.is_finite(value):
            return self.real(math.nan, path)
        # A long one has no equal float, and an exponent may make its digits endless.
        number = decimal.Decimal.__float__(value)
        if math.isfinite(number) and decimal.Decimal(repr(number)).compare(value) == 0:
            return self.real(number, path)
        return self.text(decimal.Decimal.__str__(value), path)

    def moment(self, value, path):
        value = datetime.datetime.__add__(value, datetime.timedelta(0))
        midnight = value.tzinfo is None and value.time() == datetime.time(0)
        return self.text(value.date().isoformat() if midnight else value.isoformat(), path)

    def timestamp(self, value, path):
        midnight = value.tz is None and value.normalize() == value
        return self.text(value.date().isoformat() if midnight else value.isoformat(), path)

    def day(self, value, path):
        return self.text(datetime.date.isoformat(value), path)

    def time(self, value, path):
        return self.text(datetime.time.isoformat(value), path)

    def span(self, value, path):
        return self.text(datetime.timedelta.__str__(value), path)

    def printed(self, value, path):
        return self.text(str(value), path)

    def generic(self, value, path):
        return self.array(np.asarray(value), path, 1)

    # Containers.

    def sequence(self, items, path, depth, kind=list):
        self.spend(2, kind)
        plain = []
        for i, item in enumerate(items):
            self.spend(1, kind)
            plain.append(self.plain(item, f"{path}[{i}]", depth))
        return plain

    def list(self, value, path, depth):
        return self.sequence(list.__iter__(value), path, depth)

    def tuple(self, value, path, depth):
        return self.sequence(tuple.__iter__(value), path, depth, tuple)

    def deque(self, value, path, depth):
        return self.sequence(collections.deque.__iter__(value), path, depth, collections.deque)

    def view(self, value, path, depth):
        return self.sequence(value, path, depth)

    def range(self, value, path, depth):
        return self.sequence(value, path, depth, range)

    def members(self, items, path, depth):
        self.spend(2, set)
        found = []
        for item in items:
            self.spend(1, set)
            plain = self.plain(item, f"{path}{{...}}", depth)
            number = type(plain) in (bool, int, float)
            found.append(((_name(type(item)), 0 if number else 1, plain if number else 0, "" if number else _dumps(plain)), plain))
        found.sort(key=lambda pair: pair[0])
        return [plain for _, plain in found]

    def set(self, value, path, depth):
        return self.members(set.__iter__(value), path, depth)

    def frozenset(self, value, path, depth):
        return self.members(frozenset.__iter__(value), path, depth)

    def dict(self, value, path, depth):
        self.spend(2, dict)
        plain = {}
        # The real items, whatever a subclass offers; a copy of the pairs, should anything change them meanwhile.
        for key, item in list(dict.items(value)):
            name = self.key(key, path)
            if name in plain:
                raise Unserialisable(path, _name(type(key)), f"two keys are written {name!r}: make the keys strings that differ")
            at = f"{path}[{name!r}]"
            self.spend(4, dict)
            plain[name] = self.plain(item, at, depth)
        return plain

    def key(self, key, path):
        if type(key) is str:
            return self.text(key, path)
        plain = self.plain(key, f"a key of {path}", MAX_DEPTH - 1)
        return plain if type(plain) is str else _label(plain)

    # numpy and pandas.

    def array(self, value, path, depth):
        kind = type(value)
        if _is(kind, np.ma.MaskedArray):
            mask = np.ma.getmaskarray(value)
            value = np.ndarray.__array__(value.data).astype(object)
            value[np.asarray(mask)] = None
        elif kind is not np.ndarray:
            value = np.ndarray.view(value, np.ndarray)
        self.spend(2 * value.size + 2, kind)
        if value.ndim > MAX_DEPTH:
            raise Unserialisable(path, _name(kind), "the array has too many dimensions: reshape it")
        code = value.dtype.kind
        if value.dtype.names is not None:
            names = value.dtype.names
            rows = [{name: self.plain(row[name], f"{path}[{name!r}]", depth) for name in names} for row in value.reshape(-1)]
            return _nested(rows, value.shape)
        if code == "b":
            return np.ndarray.tolist(value)
        if code in "iu":
            self.spend(value.size, kind)
            return np.ndarray.tolist(value)
        if code == "f":
            self.spend(2 * value.size, kind)
            return self.floats(value)
        if code == "M":
            return self.moments(value, path)
        if code == "m":
            values = [None if pd.isna(v) else self.text(str(v), path) for v in pd.to_timedelta(value.reshape(-1))]
            return _nested(values, value.shape)
        if code in "OU" or code == "T":
            flat = np.ndarray.tolist(value.astype(object).reshape(-1))
            if not value.shape:
                return self.plain(flat[0], path, depth)
            return _nested([self.plain(item, f"{path}[{i}]", depth) for i, item in enumerate(flat)], value.shape)
        raise Unserialisable(path, f"numpy.{value.dtype}", _KINDS.get(code, "convert the array with .astype(float) or .astype(str)"))

    def floats(self, value):
        if value.dtype.itemsize < 8:
            # Shortest digits of the narrow width, not the long tail that widening gives.
            value = value.astype(str).astype(np.float64)
        elif value.dtype.itemsize > 8:
            value = value.astype(np.float64)
        finite = np.isfinite(value)
        if finite.all():
            return np.ndarray.tolist(value)
        value = value.astype(object)
        if value.shape:
            value[~finite] = None
            return np.ndarray.tolist(value)
        return None

    def moments(self, value, path):
        if value.dtype == np.dtype("M8"):  # without a unit only NaT
            value = value.astype("M8[s]")
        index = pd.DatetimeIndex(value.reshape(-1).astype("M8[us]" if value.dtype in _COARSE else value.dtype))
        return _nested(self.stamps(index, path), value.shape)

    def stamps(self, index, path):
        known = index[~index.isna()]
        days = index.tz is None and len(known) > 0 and bool((known == known.normalize()).all())
        self.spend(10 * len(index), pd.DatetimeIndex)
        return [None if stamp is pd.NaT else (stamp.date() if days else stamp).isoformat() for stamp in index]

    def column(self, values, path, depth):
        """Plain values of one pandas array or column, in order."""
        dtype = values.dtype
        if isinstance(dtype, np.dtype):
            return self.array(np.asarray(values), path, depth)
        if isinstance(dtype, pd.DatetimeTZDtype):
            return self.stamps(pd.DatetimeIndex(values), path)
        if type(dtype).__module__.split(".", 1)[0] != "pandas":
            raise Unserialisable(path, _name(type(dtype)), "convert the column with .astype(object)")
        self.spend(2 * len(values), type(dtype))
        flat = np.ndarray.tolist(np.asarray(values, dtype=object))
        return [self.plain(item, f"{path}[{i}]", depth) for i, item in enumerate(flat)]

    def labels(self, index, path, depth):
        """Levels of an index that say more than the position: name and values of each."""
        if isinstance(index, pd.MultiIndex):
            names = [f"level_{i}" if name is None else self.key(name, path) for i, name in enumerate(index.names)]
            return [(name, self.column(index.get_level_values(i), f"{path}.index", depth)) for i, name in enumerate(names)]
        if index.name is None and index.dtype.kind in "iu":
            return []
        return [("index" if index.name is None else self.key(index.name, path), self.column(index, f"{path}.index", depth))]

    def frame(self, value, path, depth):
        rows, width = pd.DataFrame.__len__(value), len(value.columns)
        # Every cell has a key and a value.
        self.spend(rows * sum(4 + len(str(name)) for name in value.columns), pd.DataFrame)
        columns = self.labels(value.index, path, depth)
        for i in range(width):
            name = self.key(value.columns[i], path)
            series = value.iloc[:, i]
            columns.append((name, self.column(series.array if series.dtype.kind != "O" else series, f"{path}[{name!r}]", depth)))
        names = [name for name, _ in columns]
        for name in names:
            if names.count(name) > 1:
                raise Unserialisable(path, "DataFrame", f"two columns are named {name!r}: rename one, or drop the index with .reset_index(drop=True)")
        if not columns:
            return [{} for _ in range(rows)]
        return [dict(zip(names, row)) for row in zip(*(values for _, values in columns))]

    def series(self, value, path, depth):
        values = self.column(value.array if value.dtype.kind != "O" else value, path, depth)
        levels = self.labels(value.index, path, depth)
        if not levels:
            return values
        if len(levels) == 1:
            keys = [item if type(item) is str else _label(item) for item in levels[0][1]]
        else:
            keys = [_label(row) for row in zip(*(level for _, level in levels))]
        plain = dict(zip(keys, values))
        if len(plain) != len(values):
            raise Unserialisable(path, "Series", "two labels of the index are equal: use .reset_index() to keep the rows")
        return plain

    def index(self, value, path, depth):
        if isinstance(value, pd.MultiIndex):
            return [list(row) for row in zip(*(self.column(value.get_level_values(i), path, depth) for i in range(value.nlevels)))]
        return self.column(value, path, depth)


def _nested(flat, shape):
    for size in reversed(shape[1:]):
        flat = [flat[i * size : (i + 1) * size] for i in range(len(flat) // size if size else 0)]
    return flat if shape else flat[0]


def _label(plain):
    """A plain value as a key: as Python prints it, a tuple of parts in round brackets."""
    if type(plain) in (list, tuple):
        return "(" + ", ".join(part if type(part) is str else _label(part) for part in plain) + ")"
    return str(plain)


def _hint(kind):
    module, name = (type.__dict__[field].__get__(kind) for field in ("__module__", "__name__"))
    if _is(kind, bytes) or _is(kind, bytearray) or kind is memoryview:
        return "bytes are no text: use .decode() or .hex()"
    if _is(kind, complex):
        return "JSON has no complex numbers: return .real and .imag, or abs()"
    if _is(kind, BaseException):
        return "return repr() of the exception"
    if name in ("generator", "map", "zip", "filter", "enumerate", "reversed"):
        return "an iterator has no values of its own: use list()"
    if name in ("function", "builtin_function_or_method", "method", "type", "module"):
        return "call it, or return its name"
    if type(module) is str and module.split(".", 1)[0] == "pandas":
        return "finish the operation (.mean(), .sum(), ...) so that a DataFrame, a Series or a number is left"
    if "__dataclass_fields__" in type.__dict__["__dict__"].__get__(kind):
        return "use dataclasses.asdict()"
    return "put its fields into a dict of numbers, strings and lists, or use str()"


_KINDS = {
    "c": "JSON has no complex numbers: return .real and .imag, or np.abs()",
    "S": "bytes are no text: use .astype(str)",
    "V": "raw memory has no JSON form: convert the array to numbers or text",
}
_COARSE = [np.dtype(f"M8[{unit}]") for unit in ("Y", "M", "W", "D", "h", "m")]
# Exact types, the common case.
_SCALARS = {str: _Walk.text, bool: _Walk.boolean, int: _Walk.whole, float: _Walk.real}
_CONTAINERS = [
    (dict, _Walk.dict),
    (list, _Walk.list),
    (tuple, _Walk.tuple),
    (set, _Walk.set),
    (frozenset, _Walk.frozenset),
    (collections.deque, _Walk.deque),
    (range, _Walk.range),
    *((kind, _Walk.view) for kind in _VIEWS),
    (np.ndarray, _Walk.array),
    (pd.DataFrame, _Walk.frame),
    (pd.Series, _Walk.series),
    (pd.Index, _Walk.index),
    (pd.api.extensions.ExtensionArray, _Walk.column),
]
_BASES = [
    (np.generic, _Walk.generic),
    (bool, _Walk.boolean),
    (int, _Walk.whole),
    (float, _Walk.real),
    (str, _Walk.text),
    (decimal.Decimal, _Walk.decimal),
    (pd.Timestamp, _Walk.timestamp),
    (pd.Timedelta, _Walk.printed),
    (pd.Period, _Walk.printed),
    (pd.Interval, _Walk.printed),
    (datetime.datetime, _Walk.moment),
    (datetime.date, _Walk.day),
    (datetime.time, _Walk.time),
    (datetime.timedelta, _Walk.span),
]
