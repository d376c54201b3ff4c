"""Makes codecs_1.parquet and codecs_2.parquet: the same values under every codec and encoding that pyarrow writes, in pages of version 1 and 2.

Run: python codecs.py (needs pyarrow). The test holds every column against the plain one of its kind.
"""

import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 150
words = [None if n % 7 == 3 else f"贵州茅台 {n // 3} 号" + "x" * (n % 5) for n in range(ROWS)]
whole = [f"same beginning, row {n:04}" for n in range(ROWS)]
fixed = [None if n % 11 == 5 else f"{n * 37 % 4096:08x}".encode() for n in range(ROWS)]
numbers = [None if n % 13 == 1 else (n * n - 500) * (1 if n % 2 else -1) for n in range(ROWS)]
floats = [n / 8 for n in range(ROWS)]
lists = [None if n % 5 == 0 else [f"tag {k}" for k in range(n % 4)] for n in range(ROWS)]

kinds = {
    "text": (words, pa.string(), ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]),
    "whole": (whole, pa.string(), ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]),
    "fixed": (fixed, pa.binary(8), ["PLAIN", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"]),
    "int32": (numbers, pa.int32(), ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"]),
    "int64": (numbers, pa.int64(), ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"]),
    "double": (floats, pa.float64(), ["PLAIN", "BYTE_STREAM_SPLIT"]),
    "list": (lists, pa.list_(pa.string()), ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]),
}
columns, fields, encodings, codecs = [], [], {}, {}


def add(name, values, kind, encoding, codec, nullable):
    columns.append(pa.array(values, kind))
    fields.append(pa.field(name, kind, nullable))
    path = f"{name}.list.element" if pa.types.is_list(kind) else name
    encodings[path] = encoding
    codecs[path] = codec


for name, (values, kind, ways) in kinds.items():
    nullable = name != "whole"
    for encoding in ways:
        add(f"{name}/{encoding}/none", values, kind, encoding, "none", nullable)
for codec in ["snappy", "gzip", "brotli", "lz4", "zstd"]:
    for name, encoding in [("text", "PLAIN"), ("text", "DELTA_BYTE_ARRAY"), ("list", "DELTA_LENGTH_BYTE_ARRAY")]:
        values, kind, _ = kinds[name]
        add(f"{name}/{encoding}/{codec}", values, kind, encoding, codec, True)
table = pa.table(columns, schema=pa.schema(fields))
for version in [1, 2]:
    pq.write_table(
        table,
        pathlib.Path(__file__).parent / f"codecs_{version}.parquet",
        row_group_size=140,
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
        data_page_version=f"{version}.0",
        compression=codecs,
        column_encoding=encodings,
    )
