"""Prepares the interpreter: once in the template what costs time, then in each worker what depends on the job."""

import gc
import os
import random
import sys
import types
import warnings


def _help(thing=None):
    """Prints what is documented of `thing`; the interactive help of a terminal has no use here."""
    import pydoc

    print(pydoc.plain(pydoc.render_doc(thing, "Help on %s")) if thing is not None else "Say help(thing), for example help(market).")


def _stub_ctypes():
    # numpy does without ctypes; pandas only wants names from it for Windows and the clipboard.
    stub = types.ModuleType("ctypes")
    for name in ("c_size_t", "c_wchar", "c_wchar_p", "c_void_p", "get_errno", "sizeof", "c_uint", "c_char_p"):
        setattr(stub, name, None)
    return stub


def _import_all():
    sys.modules["ctypes"] = None
    for name in (
        "abc array ast base64 binascii bisect bz2 calendar cmath collections.abc contextlib copy csv dataclasses datetime decimal"
        " difflib enum errno fileinput fnmatch fractions functools glob gzip hashlib heapq hmac html inspect io itertools json"
        " keyword linecache locale pydoc logging lzma math numbers operator os.path pathlib pickle pprint queue random re reprlib"
        " secrets shelve shutil sqlite3 stat statistics string struct tarfile tempfile textwrap time timeit tokenize traceback types"
        " typing unicodedata urllib.parse uuid warnings weakref xml.etree.ElementTree zipfile zlib zoneinfo mmap _posixsubprocess"
        " _elementtree pyexpat _random _sha3 _blake2 _md5 _sha1 _sha2 _sha256 _sha512 _csv _pickle _queue _statistics _zoneinfo"
        " _multibytecodec _contextvars encodings.idna encodings.gbk encodings.gb18030"
        " encodings.utf_16 encodings.latin_1 encodings.ascii encodings.utf_8_sig"
    ).split():
        try:
            __import__(name)
        except ImportError:
            pass
    import numpy
    import numpy.ctypeslib
    import numpy.fft
    import numpy.lib.recfunctions
    import numpy.linalg
    import numpy.ma
    import numpy.polynomial
    import numpy.random

    sys.modules["ctypes"] = _stub_ctypes()
    import pandas
    import pandas.io.clipboard

    sys.modules["ctypes"] = None
    return numpy, pandas


def _use(np, pd):
    """Small operations: what is loaded on first use is loaded now."""
    import io
    import zoneinfo

    if zoneinfo.TZPATH == ():
        zoneinfo.ZoneInfo("Asia/Shanghai")
    days = pd.date_range("2024-01-01", periods=40, freq="B")
    frame = pd.DataFrame({"code": list("ab") * 20, "close": np.linspace(1.0, 2.0, 40), "n": range(40)}, index=days)
    frame["ma"] = frame["close"].rolling(5).mean()
    frame["ema"] = frame["close"].ewm(span=5).mean()
    frame["change"] = frame.groupby("code")["close"].pct_change()
    frame.groupby("code").agg({"close": ["mean", "std"], "n": "sum"})
    frame.groupby("code")["close"].apply(lambda column: column.iloc[-1])
    frame.groupby("code")["close"].transform("rank")
    frame.sort_values(["code", "close"]).drop_duplicates("code").reset_index()
    frame.pivot_table(index="n", columns="code", values="close").corr()
    frame.merge(frame[["code", "n"]], on=["code", "n"]).query("close > 1.5 and n < 30")
    frame["close"].resample("W").last()
    frame["close"].describe()
    frame.to_string(), str(frame), repr(frame["close"]), frame.head().to_html()
    frame.tz_localize("Asia/Shanghai")
    text = frame.to_csv()
    pd.read_csv(io.StringIO(text), parse_dates=[0])
    pd.read_json(io.StringIO(frame.reset_index(drop=True).to_json()))
    pd.concat([frame, frame]).nlargest(3, "close")
    pd.cut(frame["close"], 4).value_counts()
    pd.to_datetime(["2024-01-01"]), pd.Timestamp("2024-01-01 09:30"), pd.Timedelta("1D")
    pd.Series(["a1", "b2"]).str.extract(r"(\w)(\d)")
    pd.Series([1, None, 3]).fillna(0).astype("Int64").astype("category")
    np.linalg.lstsq(np.eye(3), np.ones(3), rcond=None), np.linalg.inv(np.eye(3)), np.linalg.svd(np.eye(3)), np.linalg.eigh(np.eye(3))
    np.polyfit(range(5), range(5), 1), np.corrcoef(range(5), range(5)), np.percentile(range(9), 30), np.fft.rfft(np.ones(8))
    np.random.default_rng(1).normal(size=3), np.random.seed(1), np.ones((20, 20)) @ np.ones((20, 20))
    str(np.arange(5.0)), repr(np.float64(1)), np.array2string(np.ones(2000))


def warm():
    """Loads everything. Returns what is there: versions, and the folders that a worker may read."""
    sys.stdin = open(0, closefd=False)
    # The sandbox reports what fails; nobody reads warnings of libraries about each other.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np, pd = _import_all()
        _use(np, pd)
    np.seterr(all="warn")
    warnings.formatwarning = _warning
    sys.unraisablehook = _unraisable
    try:
        import tzdata

        zones = tzdata.IANA_VERSION if hasattr(tzdata, "IANA_VERSION") else tzdata.__version__
    except ImportError:
        zones = ""
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "numpy": np.__version__,
        "pandas": pd.__version__,
        "tzdata": zones,
    }


def folders():
    """Folders of the interpreter: its modules and nothing else of the machine."""
    sys.path[:] = [entry for entry in sys.path if os.path.isabs(entry) and os.path.exists(entry)]
    return list(dict.fromkeys([*map(os.path.realpath, sys.path), *sys.path]))


def freeze():
    """Keeps what is loaded out of the collector's way: a worker then copies fewer pages."""
    gc.collect()
    gc.freeze()


def repeatable(freeze_clock, thaw_clock):
    """Whether clock and randomness follow the worker."""
    import time

    looks = []
    for _ in range(2):
        freeze_clock()
        looks.append((time.time(), os.urandom(8), time.monotonic()))
        thaw_clock()
    return looks[0] == looks[1] and looks[0][0] == 86400.0


def _warning(message, category, filename, lineno, line=None):
    where = f"line {lineno}: " if filename == "<agent>" else ""
    return f"{where}{category.__name__}: {message}\n"


def _unraisable(unraisable):
    kind = getattr(unraisable.exc_type, "__name__", "exception")
    print(f"ignored {kind}: {unraisable.exc_value}", file=sys.stderr)


def begin(code, seed, stdout, stderr, guarded):
    """Makes the interpreter the job's own. Returns the globals for its code."""
    import linecache
    import tempfile
    import time

    os.environ.clear()
    os.environ.update(HOME=".", TMPDIR=".", LC_ALL="C.UTF-8", TZ="CST-8")
    os.cpu_count = lambda: 1
    tempfile.tempdir = None
    tempfile._name_sequence = None
    time.tzset()
    random.seed(seed)
    sys.modules["numpy"].random.seed(seed & 0xFFFFFFFF)
    sys.stdout = sys.__stdout__ = stdout
    sys.stderr = sys.__stderr__ = stderr
    sys.argv = sys.orig_argv = [""]
    # Where the interpreter lies on this machine. What is still to be imported is found by sys.path.
    for name in ("executable", "_base_executable", "_home"):
        setattr(sys, name, "")
    for name in ("prefix", "exec_prefix", "base_prefix", "base_exec_prefix"):
        setattr(sys, name, "<python>")
    # What was asked before the machine was hidden.
    platform = sys.modules.get("platform")
    if platform is not None:
        platform._uname_cache = None
        platform._platform_cache.clear()
    threading = sys.modules.get("threading")
    if threading is not None:
        threading.main_thread()._native_id = 2
    for name in ("exit", "quit", "copyright", "credits", "license", "help"):
        guarded.pop(name, None)
    guarded["exit"] = guarded["quit"] = sys.exit
    guarded["help"] = _help
    linecache.cache["<agent>"] = (len(code), None, code.splitlines(True), "<agent>")
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    main.__dict__["__builtins__"] = guarded
    return main.__dict__
