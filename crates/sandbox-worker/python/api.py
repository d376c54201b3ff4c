"""Market data, the account and texts, as far as they are visible at this decision point.

    from traderharness_api import market, portfolio, news

Every method asks the environment, which answers with the values that the tool of the same purpose gives, and refuses with
PermissionError what the agent's card does not offer. Wrong arguments raise ValueError or TypeError, an unknown security or sector
LookupError, and what the dataset cannot answer RuntimeError.

In tables a missing number is NaN. While dates are hidden, `date` is a whole number: calendar days from today, -1 for yesterday;
otherwise it is a datetime64 column. Tables belong to the code that asked for them and may be changed freely.
"""

# The worker puts `_host_call(method, args_json) -> (answer_json, fd)` into this module before it runs it. The answer is an object with
# `value`, with `layout` for a table, whose columns are in the file `fd`, or with `fault`. `fd` is -1 without a table.

import functools
import json
import operator

import traderharness_columns as _columns

__all__ = ["market", "portfolio", "news"]

_FAULTS = {"permission": PermissionError, "value": ValueError, "lookup": LookupError, "environment": RuntimeError}


def _ask(method, args):
    answer_json, fd = _host_call(method, json.dumps(args, allow_nan=False))  # noqa: F821
    answer = json.loads(answer_json)
    fault = answer.get("fault")
    if fault is not None:
        raise _FAULTS.get(fault["kind"], RuntimeError)(fault["message"])
    value = answer.get("value")
    if answer.get("layout") is None:
        return value
    return _columns.table(answer["layout"], fd, tuple((value or {}).get("times", ())))


def _method(function):
    """Names the accepted arguments when another one is given."""
    accepted = function.__code__.co_varnames[1 : function.__code__.co_argcount]

    @functools.wraps(function)
    def checked(self, *args, **kwargs):
        unknown = [name for name in kwargs if name not in accepted]
        if unknown or len(args) > len(accepted):
            told = f"has no argument {unknown[0]!r}" if unknown else f"takes {len(accepted)} arguments at most"
            takes = ", ".join(accepted) if accepted else "no arguments"
            raise TypeError(f"{function.__qualname__} {told}; accepted: {takes}")
        return function(self, *args, **kwargs)

    return checked


def _text(name, value):
    if not issubclass(type(value), str):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}")
    return str(value)


def _whole(name, value):
    if type(value) is not bool:
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(f"{name} must be a whole number, not {type(value).__name__}")


def _plain(name, value):
    """A filter as JSON has it: numbers of numpy become plain ones, and a set, an array or a column of names becomes a list."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return [_plain(name, item) for item in value]
    raise TypeError(f"{name} must be a number, a string, a truth value or a list of strings, not {type(value).__name__}")


class _Api:
    __slots__ = ()

    def __repr__(self):
        return f"<{type(self).__name__}: {', '.join(self.__dir__())}>"

    def __dir__(self):
        return [name for name in vars(type(self)) if not name.startswith("_")]

    def __getattr__(self, name):
        raise AttributeError(f"{type(self).__name__} has no {name!r}; it has {', '.join(self.__dir__())}")


class market(_Api):
    """Bars, prices, features and sectors of the market up to now."""

    __slots__ = ()

    @_method
    def get_kline(self, code, days=60):
        """Daily bars of one security up to the previous trading day, oldest first, as a DataFrame.

        days: bars, 1 to 250; sessions without a bar do not count. Columns: date, open, high, low, close (CNY, as traded), volume
        (shares), amount (CNY). Needs get_kline.
        """
        return _ask("market.get_kline", {"code": _text("code", code), "days": _whole("days", days)})

    @_method
    def get_kline_5min(self, code):
        """Today's 5-minute bars of one security that have ended, oldest first, as a DataFrame; empty before the open.

        Columns: date, datetime (end of the bar; while dates are hidden the day in it is always 2000-01-01), open, high, low, close
        (CNY), volume (shares), amount (CNY). Needs get_kline.
        """
        return _ask("market.get_kline_5min", {"code": _text("code", code)})

    @_method
    def get_stock_list(self):
        """Codes of all securities that are listed now, in order, as a list of strings."""
        return _ask("market.get_stock_list", {})

    @_method
    def get_all_stocks(self):
        """The same list as get_stock_list."""
        return _ask("market.get_all_stocks", {})

    @_method
    def get_all_daily(self, days=20):
        """The newest daily bars of every security as one DataFrame, ordered by stock_code, then date.

        days: bars of each security, 1 to 120. Columns: date, open, high, low, close (CNY, as traded), volume (shares), amount (CNY),
        stock_code, change_pct (percent, from the bar before; on an ex-date from the exchange's reference price). Needs get_kline.
        """
        return _ask("market.get_all_daily", {"days": _whole("days", days)})

    @_method
    def get_behavioral_features(self):
        """Features of the last 120 sessions of every security with 60 usable ones that traded on the previous session.

        A DataFrame, one row per security, ordered by stock_code; what each column means is told by screen_behavioral_cycle. Columns:
        stock_code, last_close, last_low, range_position_60, drawdown_120_pct, change_20_pct, atr_20_pct, atr_5_to_20, volume_5_to_20,
        up_down_volume_ratio, clv_5, clv_last, obv_flow_20, breakout_20d_pct, support_20, resistance_20, earlier_resistance,
        observations, touched_support, recently_broke_out, extended_20d, distribution_risk, zero_volume_baseline.
        Needs screen_behavioral_cycle or get_kline.
        """
        return _ask("market.get_behavioral_features", {})

    @_method
    def get_stock_price(self, code):
        """The last visible price of one security and its trading so far today: the dict of the tool get_stock_price."""
        return _ask("market.get_stock_price", {"code": _text("code", code)})

    @_method
    def get_fundamentals(self, code):
        """Up to 8 published reports of one security, newest period first: the dict of the tool get_fundamentals."""
        return _ask("market.get_fundamentals", {"code": _text("code", code)})

    @_method
    def get_market_overview(self):
        """Breadth and sectors of the previous session: the dict of get_market_overview, else of get_narrative_market_overview."""
        return _ask("market.get_market_overview", {})

    @_method
    def get_sector_summary(self, sector):
        """One sector on the previous session: the dict of get_sector_summary, else of get_narrative_sector_summary.

        Of the narrative tool code only gets the sectors that it was called for today: its daily budget is spent by calling it.
        """
        return _ask("market.get_sector_summary", {"sector": _text("sector", sector)})

    @_method
    def get_sector_stocks(self, sector):
        """All members of a sector that traded on the previous session, strongest first, as a DataFrame.

        Columns: stock_code, close (CNY), change_pct (percent; NaN where it is not known). Needs the tool of get_sector_summary, and is
        bound to it in the same way.
        """
        return _ask("market.get_sector_stocks", {"sector": _text("sector", sector)})

    def screen_stocks(self, **filters):
        """Stocks that pass filters on the previous session: the dict of the tool screen_stocks, whose arguments are the filters.

        Without max_results all that pass are in `stocks`; with it (1 to 30) that many. There is no cursor.
        """
        return _ask("market.screen_stocks", {name: _plain(name, value) for name, value in filters.items()})


class portfolio(_Api):
    """The account at the last visible prices; nothing here changes it. Needs get_portfolio."""

    __slots__ = ()

    @_method
    def get_positions(self):
        """Held securities as a list of dicts, as get_portfolio gives them, in the order in which they were opened."""
        return _ask("portfolio.get_positions", {})

    @_method
    def get_cash(self):
        """Usable cash, CNY."""
        return _ask("portfolio.get_cash", {})

    @_method
    def get_total_value(self):
        """Cash and all positions, CNY."""
        return _ask("portfolio.get_total_value", {})

    @_method
    def get_gross_exposure_pct(self):
        """Value of all positions in percent of total assets."""
        return _ask("portfolio.get_gross_exposure_pct", {})


class news(_Api):
    """Announcements and news that appeared before now, newest first, as lists of dicts."""

    __slots__ = ()

    @_method
    def get_announcements(self, code, days=30):
        """Announcements of one company of the last `days` calendar days, 1 to 90, and today.

        Items as of the tool get_announcements, else of get_announcement_evidence: evidence_id, time, title, type and more.
        """
        return _ask("news.get_announcements", {"code": _text("code", code), "days": _whole("days", days)})

    @_method
    def get_policy_news(self, days=7):
        """News of the last `days` calendar days, 1 to 30, and today that speak of government, regulators or policy. Needs get_news.

        Items as of get_news: evidence_id, time, title, content (at most 3000 characters) and more.
        """
        return _ask("news.get_policy_news", {"days": _whole("days", days)})

    @_method
    def get_news(self, days=3, keyword=None):
        """News of the last `days` calendar days, 1 to 3, and today; with keyword only what holds it literally in title or content.

        Items as of the tool get_news, content at most 3000 characters. A card that offers only get_narrative_news gets the searches
        that this tool made today: its daily budget is spent by calling it.
        """
        args = {"days": _whole("days", days)}
        if keyword is not None:
            args["keyword"] = _text("keyword", keyword)
        return _ask("news.get_news", args)


market, portfolio, news = market(), portfolio(), news()
