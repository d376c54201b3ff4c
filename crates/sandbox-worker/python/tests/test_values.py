import collections
import datetime as dt
import decimal
import enum
import fractions
import json
import math
import unittest

import numpy as np
import pandas as pd

from support import load

values = load("traderharness_values", "values.py")
BIG = 1 << 20


def back(value, limit=BIG):
    return json.loads(values.to_json(value, limit))


class Given(unittest.TestCase):
    def check(self, value, expected):
        text = values.to_json(value, BIG)
        self.assertEqual(json.loads(text), expected, text)
        # Equal types too: 1, 1.0 and true are equal to Python.
        self.assertEqual(repr(json.loads(text)), repr(expected))

    def refused(self, value, path, *words, limit=BIG):
        with self.assertRaises(values.Unserialisable) as caught:
            values.to_json(value, limit)
        fault = caught.exception
        self.assertEqual(fault.path, path)
        for word in words:
            self.assertIn(word, f"{fault.type_name} {fault.hint}")


class PlainValues(Given):
    def test_numbers_keep_their_type_and_their_digits(self):
        for value in (0, -5, 2**53 + 1, 2**64 - 1, -(2**63), 0.1, 1e300, True, False, None, "é\u4e2d\"", ""):
            self.check(value, value)
        self.check(2**64, str(2**64))
        self.check(-(2**63) - 1, str(-(2**63) - 1))

    def test_what_is_no_number_is_null(self):
        self.check([math.nan, math.inf, -math.inf, pd.NA, pd.NaT, np.nan, np.float32("inf"), np.datetime64("NaT")], [None] * 8)

    def test_numbers_of_numpy_are_numbers(self):
        given = [np.int8(-3), np.uint64(2**64 - 1), np.float64(0.1), np.float32(0.1), np.float16(0.5), np.bool_(True), np.str_("x")]
        self.check(given, [-3, 2**64 - 1, 0.1, 0.1, 0.5, True, "x"])

    def test_decimals_are_numbers_where_a_float_has_their_value(self):
        given = [decimal.Decimal(t) for t in ("10.25", "0.1", "-3", "NaN", "Infinity", "0.12345678901234567890", "1E+400")]
        self.check(given, [10.25, 0.1, -3.0, None, None, "0.12345678901234567890", "1E+400"])

    def test_moments_are_iso_text(self):
        self.check(dt.date(2024, 6, 3), "2024-06-03")
        self.check(dt.datetime(2024, 6, 3), "2024-06-03")
        self.check(dt.datetime(2024, 6, 3, 9, 35), "2024-06-03T09:35:00")
        self.check(pd.Timestamp("2024-06-03"), "2024-06-03")
        self.check(pd.Timestamp("2024-06-03 09:35"), "2024-06-03T09:35:00")
        self.check(np.datetime64("2024-06-03"), ["2024-06-03"][0])
        self.check(dt.time(9, 35), "09:35:00")
        self.check(dt.timedelta(days=1, hours=2), "1 day, 2:00:00")
        self.check(pd.Timedelta(days=1), "1 days 00:00:00")
        self.check(pd.Period("2024-06", "M"), "2024-06")
        self.check(pd.Interval(0, 1), "(0, 1]")

    def test_subclasses_of_built_in_types_are_what_they_are_made_of(self):
        class Level(enum.IntEnum):
            HIGH = 3

        class Text(str):
            def __str__(self):
                raise AssertionError("code of a result must not run")

            __repr__ = __eq__ = __hash__ = None

        class Table(dict):
            def items(self):
                raise AssertionError("code of a result must not run")

            __iter__ = keys = __getitem__ = items

        class Row(list):
            def __iter__(self):
                raise AssertionError("code of a result must not run")

            __len__ = __getitem__ = __iter__

        class Float(float):
            def __pos__(self):
                raise AssertionError("code of a result must not run")

            __float__ = __repr__ = __eq__ = __pos__
            __hash__ = float.__hash__

        class Int(int):
            def __int__(self):
                raise AssertionError("code of a result must not run")

            __index__ = __repr__ = __str__ = bit_length = __int__

        point = collections.namedtuple("Point", "x y")
        counted = collections.Counter("abca")
        self.check([Level.HIGH, Text("t"), Table(a=1), Row([1, 2]), point(1, 2)], [3, "t", {"a": 1}, [1, 2], [1, 2]])
        self.check([Float(1.5), Int(7)], [1.5, 7])
        self.check([counted, collections.OrderedDict(b=1, a=2)], [{"a": 2, "b": 1, "c": 1}, {"b": 1, "a": 2}])

    def test_a_type_that_lies_about_itself_is_not_believed(self):
        class Liar:
            @property
            def __class__(self):
                raise AssertionError("code of a result must not run")

        class Meta(type):
            def __instancecheck__(cls, other):
                raise AssertionError("code of a result must not run")

            __subclasscheck__ = __getattribute__ = __instancecheck__

        class Odd(metaclass=Meta):
            pass

        self.refused(Liar(), "result", "Liar")
        self.refused([object.__new__(Odd)], "result[0]")


class Containers(Given):
    def test_sets_are_ordered_by_type_and_value(self):
        self.check({3, 1, 2, "b", "a", 1.5}, [1.5, 1, 2, 3, "a", "b"])
        self.check(frozenset({(2, "b"), (1, "z"), (1, "a")}), [[1, "a"], [1, "z"], [2, "b"]])
        self.check(set("the same bytes whatever the hash seed"), sorted(set("the same bytes whatever the hash seed")))

    def test_ranges_views_and_queues_are_lists(self):
        table = {"a": 1, "b": 2}
        self.check([range(3), table.keys(), table.values(), table.items(), collections.deque([1])], [[0, 1, 2], ["a", "b"], [1, 2], [["a", 1], ["b", 2]], [1]])

    def test_keys_become_text(self):
        given = {1: "i", 1.5: "f", None: "n", True: "t", ("SHM-000001", -3): "pair", np.int64(7): "np", dt.date(2024, 6, 3): "d"}
        # True is the key 1 to Python.
        self.check(given, {"1": "t", "1.5": "f", "None": "n", "(SHM-000001, -3)": "pair", "7": "np", "2024-06-03": "d"})
        self.refused({"a": {1: 1, "1": 2}}, "result['a']", "written '1'")
        self.refused({frozenset([1]): {2: 3}, b"x": 1}, "a key of result", "bytes")

    def test_circles_and_depth_are_refused(self):
        circle = {"a": []}
        circle["a"].append(circle)
        self.refused(circle, "result['a'][0]", "contains itself")
        deep = 1
        for _ in range(100):
            deep = [deep]
        self.refused(deep, "result" + "[0]" * 33, "flatten")
        shared = [1]
        self.check([shared, shared], [[1], [1]])

    def test_what_has_no_json_form_says_where_and_how_to_convert(self):
        class Mine:
            pass

        self.refused({"a": [0, Mine()]}, "result['a'][1]", "Mine", "dict")
        self.refused(b"x", "result", "bytes", ".decode()")
        self.refused(bytearray(b"x"), "result", ".decode()")
        self.refused(memoryview(b"x"), "result", ".hex()")
        self.refused(1j, "result", "complex", ".real")
        self.refused(np.complex128(1j), "result", "complex128", "np.abs")
        self.refused((i for i in []), "result", "generator", "list()")
        self.refused(len, "result", "name")
        self.refused(fractions.Fraction(1, 3), "result", "Fraction")
        self.refused(ValueError("x"), "result", "ValueError", "repr()")
        self.refused(pd.DataFrame({"a": [1], "b": [2]}).groupby("a"), "result", ".mean()")
        self.refused("\ud800", "result", "surrogate")
        self.refused({"\ud800": 1}, "result", "surrogate")
        self.refused(1 << 5000, "result", "bits")
        self.refused(np.array([b"x"]), "result", "bytes")

    def test_a_result_that_is_too_long_says_what_to_keep(self):
        self.refused(["x" * 100] * 100, "result", "head(50)", limit=1000)
        self.refused([[i] * 100 for i in range(100)], "result", limit=1000)
        self.refused(pd.DataFrame({"a": np.arange(10_000)}), "result", "DataFrame", limit=10_000)
        self.refused(np.zeros(10**7), "result", limit=1000)
        self.refused(range(10**12), "result", limit=1000)
        self.refused("\u4e2d" * 400, "result", limit=1000)
        self.assertEqual(values.to_json("x" * 998, 1000), '"' + "x" * 998 + '"')


class Arrays(Given):
    def test_arrays_keep_their_shape_and_type(self):
        self.check(np.arange(6).reshape(2, 3), [[0, 1, 2], [3, 4, 5]])
        self.check(np.array([[1.5, np.nan], [np.inf, 2]]), [[1.5, None], [None, 2.0]])
        self.check(np.array([0.1, 0.2], dtype="f4"), [0.1, 0.2])
        self.check(np.array([True, False]), [True, False])
        self.check(np.array(["a", "b"]), ["a", "b"])
        self.check(np.array([1, "a", None, np.nan, {"k": np.int64(1)}], dtype=object), [1, "a", None, None, {"k": 1}])
        self.check(np.array(3.5), 3.5)
        self.check(np.array(np.nan), None)
        self.check(np.zeros((2, 0)), [[], []])
        self.check(np.zeros((0, 2)), [])
        self.check(np.ma.array([1, 2], mask=[True, False]), [None, 2])
        self.check(np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]), [{"a": 1, "b": 2.5}])
        self.check(np.array(["2024-06-03", "NaT"], dtype="M8[D]"), ["2024-06-03", None])
        self.check(np.array(["2024-06-03T09:35", "2024-06-04"], dtype="M8[s]"), ["2024-06-03T09:35:00", "2024-06-04T00:00:00"])

    def test_series_are_lists_or_objects_by_their_index(self):
        self.check(pd.Series([1.5, np.nan]), [1.5, None])
        self.check(pd.Series([1, 2], index=[7, 9]), [1, 2])
        self.check(pd.Series([1, 2], index=["a", "b"]), {"a": 1, "b": 2})
        frame = pd.DataFrame({"code": ["x", "y", "x"], "v": [1.0, 2.0, 3.0]})
        self.check(frame.groupby("code").v.mean(), {"x": 2.0, "y": 2.0})
        self.check(frame.code.value_counts(), {"x": 2, "y": 1})
        self.check(frame.groupby(["code", "v"]).size(), {"(x, 1.0)": 1, "(x, 3.0)": 1, "(y, 2.0)": 1})
        self.check(pd.Series([1], index=pd.DatetimeIndex(["2024-06-03"])), {"2024-06-03": 1})
        self.refused(pd.Series([1, 2], index=["a", "a"]), "result", "Series", "reset_index")

    def test_frames_are_records(self):
        frame = pd.DataFrame({"code": ["x", "y"], "v": [1.5, np.nan], "n": [1, 2], "b": [True, False]})
        rows = [{"code": "x", "v": 1.5, "n": 1, "b": True}, {"code": "y", "v": None, "n": 2, "b": False}]
        self.check(frame, rows)
        self.check(frame[frame.n > 1], rows[1:])
        self.check(frame.set_index("code").head(1), [{"code": "x", "v": 1.5, "n": 1, "b": True}])
        self.check(frame.set_index(["code", "n"])[["b"]].head(1), [{"code": "x", "n": 1, "b": True}])
        self.check(pd.DataFrame({"v": [1]}, index=["a"]), [{"index": "a", "v": 1}])
        self.check(pd.DataFrame({1: [2], ("a", "b"): [3]}), [{"1": 2, "(a, b)": 3}])
        self.check(pd.DataFrame(), [])
        self.check(pd.DataFrame(columns=["a"]), [])
        self.check(pd.DataFrame({"t": pd.to_datetime(["2024-06-03", None])}), [{"t": "2024-06-03"}, {"t": None}])
        self.check(pd.DataFrame({"t": pd.to_datetime(["2024-06-03"]).tz_localize("UTC")}), [{"t": "2024-06-03T00:00:00+00:00"}])
        self.check(pd.DataFrame({"c": pd.Categorical(["a", None]), "i": pd.array([1, None], dtype="Int64")}), [{"c": "a", "i": 1}, {"c": None, "i": None}])
        self.check(pd.DataFrame({"s": pd.array(["a", None], dtype="string")}), [{"s": "a"}, {"s": None}])
        self.refused(pd.DataFrame([[1, 2]], columns=["a", "a"]), "result", "rename")
        self.refused({"f": pd.DataFrame({"v": [b"x"]})}, "result['f']['v'][0]", "bytes")

    def test_indexes_and_other_arrays_are_lists(self):
        self.check(pd.Index(["a", "b"]), ["a", "b"])
        self.check(pd.RangeIndex(3), [0, 1, 2])
        self.check(pd.MultiIndex.from_tuples([("a", 1)]), [["a", 1]])
        self.check(pd.Categorical(["a", None]), ["a", None])
        self.check(pd.array([1.5, None], dtype="Float64"), [1.5, None])
        self.check(pd.cut(pd.Series([1.0, 5.0]), [0, 3, 6]), ["(0, 3]", "(3, 6]"])


if __name__ == "__main__":
    unittest.main()
