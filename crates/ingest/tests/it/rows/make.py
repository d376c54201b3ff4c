"""Makes kinds.parquet: every kind of value that writers of Parquet use, as pyarrow writes it. Run: python make.py (needs pyarrow, pandas)."""

import datetime as dt
import decimal
import pathlib
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

D = decimal.Decimal
moment = dt.datetime(2024, 3, 14, 9, 30, 0, 500000)
columns = {
    "flag": pa.array([True, None, False], pa.bool_()),
    "int8": pa.array([-128, None, 127], pa.int8()),
    "uint64": pa.array([2**64 - 1, None, 0], pa.uint64()),
    "float32": pa.array([0.1, None, float("nan")], pa.float32()),
    "float64": pa.array([1e300, None, float("-inf")], pa.float64()),
    "half": pa.array([1.5, None, -2.0], pa.float16()),
    "small_decimal": pa.array([D("1.20"), None, D("-0.05")], pa.decimal128(5, 2)),
    "large_decimal": pa.array([D("12345678901234567890.123"), None, D("-1.000")], pa.decimal128(30, 3)),
    "text": pa.array(["股票 \"x\"\n", None, ""], pa.string()),
    "large_text": pa.array(["a", None, "b"], pa.large_string()),
    "bytes": pa.array([b"plain", None, b"\xff\x00"], pa.binary()),
    "fixed": pa.array([b"\x01\x02\x03\x04", None, b"abcd"], pa.binary(4)),
    "coded": pa.array(["x", None, "x"], pa.string()).dictionary_encode(),
    "date": pa.array([dt.date(2024, 3, 14), None, dt.date(1969, 12, 31)], pa.date32()),
    "time_ms": pa.array([dt.time(9, 30), None, dt.time(23, 59, 59, 999000)], pa.time32("ms")),
    "time_us": pa.array([dt.time(9, 30, 0, 1), None, dt.time(0)], pa.time64("us")),
    "stamp_ms": pa.array([moment, None, moment], pa.timestamp("ms")),
    "stamp_us_utc": pa.array([moment, None, moment], pa.timestamp("us", tz="UTC")),
    "stamp_ns": pa.array([moment, None, moment], pa.timestamp("ns")),
    "list": pa.array([[1, None, 2], None, []], pa.list_(pa.int32())),
    "lists": pa.array([[["a"], [], None], None, [[]]], pa.list_(pa.list_(pa.string()))),
    "struct": pa.array([{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}],
                       pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))])),
    "structs": pa.array([[{"role": "user", "n": [1]}, {"role": None, "n": None}], None, []],
                        pa.list_(pa.struct([("role", pa.string()), ("n", pa.list_(pa.int8()))]))),
    "map": pa.array([[("k", 1), ("l", None)], None, []], pa.map_(pa.string(), pa.int64())),
    "nothing": pa.nulls(3),
}
table = pa.table(columns).replace_schema_metadata({"pandas": "{\"creator\": \"hand\"}"})
here = pathlib.Path(__file__).parent
pq.write_table(table, here / "kinds.parquet", compression="zstd", row_group_size=2)
