import fcntl
import json
import os
import pickle
import unittest

import numpy as np
import pandas as pd

from support import load

columns = load("traderharness_columns", "columns.py")
KINDS = {"f64": "<f8", "i64": "<i8", "i32": "<i4", "bool": "?", "text": "<i4"}


def sealed(cells, strings=()):
    """A sealed file of (name, kind, values) as the host makes it; its layout and descriptor."""
    rows = len(cells[0][2]) if cells else 0
    body, described = bytearray(), []
    for name, kind, values in cells:
        body += bytes(-len(body) % 64)
        described.append({"name": name, "kind": kind, "offset": len(body)})
        body += np.asarray(values, dtype=KINDS[kind]).tobytes()
    body += bytes(-len(body) % 64)
    text = json.dumps(list(strings)).encode()
    layout = {"rows": rows, "bytes": len(body) + len(text), "columns": described, "strings": [len(body), len(text)]}
    fd = os.memfd_create("table", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, bytes(body) + text)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return layout, fd


def bars(rows):
    price = np.linspace(1, 2, rows)
    price[0] = np.nan
    return sealed(
        [
            ("date", "i64", np.arange(rows) * 86_400),
            ("close", "f64", price),
            ("volume", "f64", price * 100),
            ("stock_code", "text", np.arange(rows) % 3 - 1),
            ("flag", "bool", np.arange(rows) % 2 == 0),
            ("n", "i32", np.arange(rows)),
        ],
        ["SHM-000001", "SHM-000002"],
    )


# One that is copied and one that is mapped.
SIZES = (12, 60_000)


class Tables(unittest.TestCase):
    def each(self):
        for rows in SIZES:
            layout, fd = bars(rows)
            keep = os.dup(fd)
            before = os.pread(keep, layout["bytes"], 0)
            frame = columns.table(layout, fd, ("date",))
            with self.assertRaises(OSError, msg="the descriptor is closed"):
                os.fstat(fd)
            with self.subTest(rows=rows):
                yield frame
            self.assertEqual(os.pread(keep, layout["bytes"], 0), before, "the file is as the host made it")
            os.close(keep)

    def test_columns_have_their_names_types_and_values(self):
        for frame in self.each():
            self.assertEqual(list(frame.columns), ["date", "close", "volume", "stock_code", "flag", "n"])
            self.assertEqual([str(frame[c].dtype) for c in ("date", "close", "flag", "n")], ["datetime64[s]", "float64", "bool", "int32"])
            self.assertIn(str(frame.stock_code.dtype), ("object", "str"))
            self.assertTrue(np.isnan(frame.close[0]) and frame.close.notna()[1:].all())
            self.assertTrue(pd.isna(frame.stock_code[0]))
            self.assertEqual(list(frame.stock_code[1:4]), ["SHM-000001", "SHM-000002", frame.stock_code[3]])
            self.assertEqual(str(frame.date[1].date()), "1970-01-02")
            self.assertEqual(frame.index.tolist()[:3], [0, 1, 2])

    def test_a_table_is_used_as_any_other(self):
        for frame in self.each():
            chosen = frame[frame.stock_code == "SHM-000001"]
            self.assertEqual(len(chosen), len(frame) // 3)
            means = frame.groupby("stock_code").close.mean()
            self.assertEqual(list(means.index), ["SHM-000001", "SHM-000002"])
            wide = frame.pivot_table(index="n", columns="stock_code", values="close")
            wide["mean"] = wide.mean(axis=1)
            self.assertEqual(list(wide.columns), ["SHM-000001", "SHM-000002", "mean"])
            self.assertTrue(frame.stock_code.str.startswith("SHM").sum() > 0)
            self.assertEqual(len(pickle.loads(pickle.dumps(frame))), len(frame))
            joined = frame.merge(pd.DataFrame({"stock_code": ["SHM-000002"], "w": [1]}), on="stock_code")
            self.assertEqual(len(joined), len(chosen))
            frame.groupby("stock_code").close.rolling(3).mean()
            self.assertEqual(len(frame[frame.date >= "1970-01-05"]), len(frame) - 4)

    def test_every_way_to_write_into_a_table_works_and_reaches_only_the_table(self):
        def column(frame):
            frame["x"] = frame.close * 2
            frame["close"] = frame.close.fillna(0.0)

        def locations(frame):
            frame.loc[0, "close"] = 5.0
            frame.iloc[1, 1] = 6.0
            frame.at[2, "close"] = 7.0
            frame.iat[3, 1] = 8.0
            frame.loc[frame.n > 4, "close"] = 0.0
            frame.loc[frame.n > 4, "volume"] *= 2
            frame.loc[frame.flag, ["close", "volume"]] = 1.0
            frame.loc[5, "stock_code"] = "another"
            frame.loc[6, "flag"] = False
            frame.loc[7, "n"] = -1

        def arithmetic(frame):
            frame["close"] += 1
            frame["n"] **= 2

        def dropping(frame):
            frame.fillna({"close": 0.0}, inplace=True)
            frame.sort_values("n", ascending=False, inplace=True)
            frame.drop(columns="volume", inplace=True)

        def arrays(frame):
            values = frame["close"].to_numpy(copy=True)
            values[0] = 1.0
            values.sort()

        for write in (column, locations, arithmetic, dropping, arrays):
            for frame in self.each():
                write(frame)

    def test_two_tables_of_one_file_do_not_share_what_is_written(self):
        layout, fd = bars(60_000)
        first, second = columns.table(layout, os.dup(fd)), columns.table(layout, fd)
        first.loc[5, "close"] = -1.0
        self.assertNotEqual(second.close[5], -1.0)

    def test_numbers_of_a_large_table_are_not_copied(self):
        layout, fd = bars(60_000)
        frame = columns.table(layout, fd)
        base = frame["close"].to_numpy()
        while isinstance(base.base, np.ndarray):
            base = base.base
        self.assertEqual(type(base.base).__name__, "memoryview" if isinstance(base.base, memoryview) else "mmap")

    def test_thousands_of_small_tables_hold_no_descriptor(self):
        held = len(os.listdir("/proc/self/fd"))
        kept = [columns.table(*bars(60)) for _ in range(2_000)]
        self.assertEqual(len(os.listdir("/proc/self/fd")), held)
        self.assertEqual(len(kept), 2_000)

    def test_a_table_without_rows_has_its_columns(self):
        layout, fd = sealed([("date", "i64", []), ("stock_code", "text", [])])
        frame = columns.table(layout, fd, ("date",))
        self.assertEqual((len(frame), list(frame.columns)), (0, ["date", "stock_code"]))


class Api(unittest.TestCase):
    def setUp(self):
        self.asked, self.answers = [], {}
        self.api = load("traderharness_api", "api.py", _host_call=self.answer)

    def answer(self, method, args):
        self.asked.append((method, json.loads(args)))
        answer, fd = self.answers.get(method, ({"value": None}, -1))
        return json.dumps(answer), fd

    def raises(self, kind, call, *words):
        with self.assertRaises(kind) as caught:
            call()
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_arguments_go_by_place_or_by_name(self):
        market, portfolio, news = self.api.market, self.api.portfolio, self.api.news
        market.get_kline("A")
        market.get_kline("A", 5)
        market.get_kline(code="A", days=np.int64(5))
        market.screen_stocks(sort_by="volume", industry={"b", "a"}, price_min=np.float64(1.5))
        news.get_news(keyword="x")
        news.get_announcements("A", days=3)
        portfolio.get_cash()
        kline = lambda days: ("market.get_kline", {"code": "A", "days": days})
        expected = [
            kline(60),
            kline(5),
            kline(5),
            ("market.screen_stocks", {"sort_by": "volume", "industry": ["a", "b"], "price_min": 1.5}),
            ("news.get_news", {"days": 3, "keyword": "x"}),
            ("news.get_announcements", {"code": "A", "days": 3}),
            ("portfolio.get_cash", {}),
        ]
        self.assertEqual(self.asked, expected)

    def test_wrong_arguments_say_what_is_accepted_and_ask_nothing(self):
        market = self.api.market
        self.raises(TypeError, lambda: market.get_all_daily(days=5, offset=1), "'offset'", "accepted: days")
        self.raises(TypeError, lambda: market.get_kline(), "code")
        self.raises(TypeError, lambda: market.get_kline(600000), "code must be a string, not int")
        for days in (True, 5.0, "5", None):
            self.raises(TypeError, lambda: market.get_kline("A", days), "days must be a whole number")
        self.raises(TypeError, lambda: self.api.portfolio.get_cash(1), "no arguments")
        self.raises(TypeError, lambda: market.screen_stocks(industry=object()), "industry")
        self.raises(ValueError, lambda: market.screen_stocks(price_min=float("nan")))
        self.raises(AttributeError, lambda: market.run_backtest, "get_all_daily")
        self.raises(AttributeError, lambda: market._ctx, "it has")
        self.assertEqual(self.asked, [])

    def test_faults_are_exceptions_of_their_kind(self):
        kinds = {"permission": PermissionError, "value": ValueError, "lookup": LookupError, "environment": RuntimeError}
        for kind, error in kinds.items():
            self.answers["market.get_stock_list"] = ({"fault": {"kind": kind, "message": "why"}}, -1)
            self.raises(error, self.api.market.get_stock_list, "why")

    def test_a_table_is_a_frame_and_a_value_is_itself(self):
        layout, fd = bars(12)
        self.answers["market.get_kline"] = ({"value": {"times": ["date"]}, "layout": layout}, fd)
        self.answers["market.get_stock_price"] = ({"value": {"price": 1.5}}, -1)
        frame = self.api.market.get_kline("A")
        self.assertEqual(str(frame.date.dtype), "datetime64[s]")
        self.assertEqual(self.api.market.get_stock_price("A"), {"price": 1.5})

    def test_the_objects_hold_nothing_and_every_method_is_explained(self):
        for thing in (self.api.market, self.api.portfolio, self.api.news):
            with self.assertRaises(AttributeError):
                thing.data = 1
            self.assertFalse(hasattr(thing, "__dict__"))
            for name in dir(thing):
                self.assertTrue(getattr(thing, name).__doc__, name)
            self.assertIn(dir(thing)[0], repr(thing))


if __name__ == "__main__":
    unittest.main()
