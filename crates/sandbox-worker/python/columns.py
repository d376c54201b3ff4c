"""Tables from the host: a sealed memory file with columns, turned into a pandas DataFrame.

Loaded as `traderharness_columns`. The file is mapped privately: numbers are not copied, and whoever writes into a frame writes into
pages of its own process, never into the file. A small table is copied, so that thousands of them can be kept: a mapping holds a
descriptor for as long as its frame lives.
"""

import json
import mmap
import os

import numpy as np
import pandas as pd

__all__ = ["table"]

# Tables above this many bytes are mapped, smaller ones copied.
MAPPED = 1 << 20

_DTYPES = {
    "f64": np.dtype("<f8"),
    "i64": np.dtype("<i8"),
    "i32": np.dtype("<i4"),
    "bool": np.dtype("?"),
    "text": np.dtype("<i4"),
}
# From pandas 3 on text has a dtype of its own; before, text is an object column.
_TEXT_DTYPE = "str" if int(pd.__version__.split(".", 1)[0]) >= 3 else None


def _contents(fd, size):
    if size > MAPPED:
        try:
            return mmap.mmap(fd, size, access=mmap.ACCESS_COPY)
        except OSError as fault:
            raise RuntimeError(
                "no descriptor or memory is left for another large table: keep fewer tables at a time, or copies of the columns you need"
            ) from fault
    with mmap.mmap(fd, size, access=mmap.ACCESS_READ) as mapped:
        return bytearray(mapped)


def table(layout, fd, times=()):
    """The DataFrame of a layout over the file `fd`, which is closed. Columns named in `times` hold seconds since 1970."""
    try:
        contents = _contents(fd, layout["bytes"])
    finally:
        os.close(fd)
    rows = layout["rows"]
    start, length = layout["strings"]
    strings = json.loads(bytes(memoryview(contents)[start : start + length]))
    # One entry more, so that -1 finds the missing value.
    words = np.array([*strings, None], dtype=object)
    frame = {}
    for column in layout["columns"]:
        kind, name = column["kind"], column["name"]
        values = np.frombuffer(contents, dtype=_DTYPES[kind], count=rows, offset=column["offset"])
        if kind == "text":
            values = words.take(values)
            if _TEXT_DTYPE is not None:
                values = pd.array(values, dtype=_TEXT_DTYPE)
        elif name in times:
            values = values.view("<M8[s]")
        frame[name] = values
    return pd.DataFrame(frame, index=pd.RangeIndex(rows), copy=False)
