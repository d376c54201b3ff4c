"""Compiles the agent's code and says clearly what it cannot import and why. This is for messages only: what the process may do is
decided by the kernel, whatever gets imported.
"""

import ast
import builtins
import sys

_PROCESS = "processes and threads cannot be started here"
_NETWORK = "there is no network here"
_NATIVE = "native code cannot be loaded here"
_INSIDE = "the interpreter's inside belongs to the environment"
_FRAMEWORK = "backtest frameworks are not available; the account is the environment's"
_SOURCE = "outside data sources are not available; use `from traderharness_api import market, portfolio, news`"

AVAILABLE = "available: numpy, pandas, traderharness_api and the standard library without processes, network and native code"

DISALLOWED = {
    **dict.fromkeys(
        "backtrader zipline zipline_reloaded vectorbt vectorbtpro qlib rqalpha backtesting bt pyalgotrade catalyst nautilus_trader"
        " freqtrade vnpy hikyuu quantaxis pybroker lean fastquant rqalpha_plus finrl jqboson bigquant hftbacktest".split(),
        _FRAMEWORK,
    ),
    **dict.fromkeys(
        "akshare tushare baostock efinance yfinance pandas_datareader rqdatac jqdatasdk WindPy mootdx pytdx adata qstock"
        " alpha_vantage ccxt xtquant".split(),
        _SOURCE,
    ),
    **dict.fromkeys(
        "subprocess multiprocessing threading _thread concurrent asyncio pty _posixsubprocess joblib".split(), _PROCESS
    ),
    **dict.fromkeys(
        "socket _socket ssl _ssl http ftplib smtplib imaplib poplib nntplib telnetlib socketserver xmlrpc selectors select"
        " webbrowser requests httpx aiohttp urllib3 urllib.request urllib.error urllib.robotparser wsgiref".split(),
        _NETWORK,
    ),
    **dict.fromkeys("ctypes _ctypes cffi mmap _posixshmem numba cython".split(), _NATIVE),
    **dict.fromkeys(
        "importlib _imp imp pkgutil runpy zipimport signal _signal resource fcntl faulthandler tracemalloc trace pdb bdb code"
        " codeop cProfile profile sysconfig site ensurepip venv pip setuptools _xxsubinterpreters _testcapi _testinternalcapi"
        " traderharness_worker traderharness_columns traderharness_values traderharness_guard traderharness_run posix".split(),
        _INSIDE,
    ),
}


class Disallowed(ImportError):
    """An import that is never allowed."""

    def __init__(self, name, reason, line=None):
        super().__init__(f"`{name}` cannot be imported: {reason}; {AVAILABLE}")
        self.line = line


# What a traceback calls it: code that catches it knows it by this name.
Disallowed.__name__ = Disallowed.__qualname__ = "ImportError"


def reason(name):
    """Why a module cannot be imported: (the part of the name that decides, the reason), or None."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        whole = ".".join(parts[:end])
        if whole in DISALLOWED:
            return whole, DISALLOWED[whole]
    return None


def _check(name, line=None):
    found = reason(name)
    if found is not None:
        raise Disallowed(*found, line)


class Finder:
    """Says the same where a library is about to load what could not work here, e.g. pandas asked for an address of the network."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        found = reason(name)
        if found is not None and found[1] in (_PROCESS, _NETWORK, _NATIVE):
            raise Disallowed(*found)
        return None


def _names(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def compiled(source):
    """The code object. Raises SyntaxError, or Disallowed with the first line that imports what is never allowed."""
    tree = ast.parse(source, "<agent>", "exec")
    for node in ast.walk(tree):
        for name in _names(node):
            _check(name, node.lineno)
    return compile(tree, "<agent>", "exec", dont_inherit=True)


def namespace():
    """Builtins of the agent's code: Python's own, but imports at run time give the same message."""
    sys.meta_path.insert(0, Finder)
    own = dict(builtins.__dict__)
    original = builtins.__import__

    def __import__(name, globals=None, locals=None, fromlist=(), level=0):
        if not level and isinstance(name, str):
            _check(name)
            for part in fromlist or ():
                if isinstance(part, str):
                    _check(f"{name}.{part}")
        return original(name, globals, locals, fromlist, level)

    own["__import__"] = __import__
    return own
