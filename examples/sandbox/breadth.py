# Breadth of the last five sessions and the strongest securities, as an agent's execute_code call would compute them.
# Run it: traderharness sandbox run examples/sandbox/breadth.py
from traderharness_api import market

bars = market.get_all_daily(6)
close = bars.pivot(index="date", columns="stock_code", values="close")
change = (100 * (close / close.shift(1) - 1)).iloc[1:]

print(f"{close.shape[1]} securities, {len(change)} sessions")
result = {
    "advancers": (change > 0).sum(axis=1).tolist(),
    "median_change_pct": change.median(axis=1).round(2).tolist(),
    "strongest": change.iloc[-1].nlargest(3).round(2).to_dict(),
}
