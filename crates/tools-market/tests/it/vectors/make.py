"""Writes indicators.json: indicators of the bundled pack's bars as TA-Lib and numpy compute them.

    pip install pandas pyarrow TA-Lib        # made with 3.1.1, 26.0.1, 0.8.2
    python make.py                           # from this directory

The bars are in the file too, so that the tests need neither the pack nor Python. TA-Lib has no realised volatility and no drawdown, and
starts the fast average of its MACD late, so that `macd` is put together from its EMA.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import talib

PACK = Path(__file__).resolve().parents[4] / "ingest/packs/real-zvt/daily.parquet"
BARS, TAIL = 220, 60


def lines(indicator, p, o):
    high, low, close, volume = o["high"], o["low"], o["close"], o["volume"]
    if indicator == "sma":
        return {"value": talib.SMA(close, p["period"])}
    if indicator == "ema":
        return {"value": talib.EMA(close, p["period"])}
    if indicator == "wma":
        return {"value": talib.WMA(close, p["period"])}
    if indicator == "rsi":
        return {"value": talib.RSI(close, p["period"])}
    if indicator == "macd":
        line = talib.EMA(close, p["fast"]) - talib.EMA(close, p["slow"])
        known = line[~np.isnan(line)]
        signal = np.concatenate([np.full(len(line) - len(known), np.nan), talib.EMA(known, p["signal"])])
        return {"macd": line, "signal": signal, "histogram": line - signal}
    if indicator == "bollinger":
        upper, middle, lower = talib.BBANDS(close, p["period"], p["deviations"], p["deviations"])
        width = upper - lower
        return {
            "upper": upper,
            "middle": middle,
            "lower": lower,
            "percent_b": (close - lower) / width,
            "bandwidth": width / middle,
        }
    if indicator == "atr":
        return {"value": talib.ATR(high, low, close, p["period"])}
    if indicator == "stochastic":
        k, d = talib.STOCH(high, low, close, p["k"], p["smooth"], 0, p["d"], 0)
        return {"k": k, "d": d}
    if indicator == "obv":
        return {"value": talib.OBV(close, volume)}
    if indicator == "roc":
        return {"value": talib.ROC(close, p["period"])}
    if indicator == "realised_volatility":
        returns = pd.Series(np.log(close)).diff()
        return {"value": (returns.rolling(p["period"]).std(ddof=1) * np.sqrt(p["annualisation"])).to_numpy()}
    if indicator == "max_drawdown":
        return {"value": np.minimum.accumulate(close / np.maximum.accumulate(close) - 1)}
    raise ValueError(indicator)


CASES = [
    ("sma", {"period": 20}),
    ("sma", {"period": 1}),
    ("ema", {"period": 12}),
    ("ema", {"period": 50}),
    ("wma", {"period": 10}),
    ("rsi", {"period": 14}),
    ("rsi", {"period": 6}),
    ("macd", {"fast": 12, "slow": 26, "signal": 9}),
    ("macd", {"fast": 5, "slow": 34, "signal": 5}),
    ("bollinger", {"period": 20, "deviations": 2.0}),
    ("bollinger", {"period": 10, "deviations": 1.5}),
    ("atr", {"period": 14}),
    ("stochastic", {"k": 14, "smooth": 3, "d": 3}),
    ("stochastic", {"k": 9, "smooth": 1, "d": 5}),
    ("obv", {}),
    ("roc", {"period": 10}),
    ("realised_volatility", {"period": 20, "annualisation": 252}),
    ("realised_volatility", {"period": 60, "annualisation": 1}),
    ("max_drawdown", {}),
]


def main():
    frame = pd.read_parquet(PACK)
    stocks = []
    for code in ["000338", "000001"]:
        rows = frame[frame.stock_code == code].sort_values("date").dropna()
        rows, after = rows.iloc[:BARS], rows.iloc[BARS]
        columns = {name: rows[name].to_numpy(dtype=float) for name in ["open", "high", "low", "close", "volume"]}
        cases = []
        for indicator, parameters in CASES:
            tails = {name: [float(v) for v in line[-TAIL:]] for name, line in lines(indicator, parameters, columns).items()}
            assert all(np.isfinite(tail).all() for tail in tails.values()), indicator
            cases.append({"indicator": indicator, "parameters": parameters, "lines": tails})
        stocks.append(
            {
                "code": code,
                "sessions": [str(day.date()) for day in rows["date"]],
                "clock": str(after["date"].date()),
                **{name: column.tolist() for name, column in columns.items()},
                "cases": cases,
            }
        )
    body = {"made_with": f"TA-Lib {talib.__version__}, numpy {np.__version__}", "stocks": stocks}
    Path(__file__).with_name("indicators.json").write_text(json.dumps(body, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
