"""Print what was sold for, by one column of a table of orders: totals.py TABLE COLUMN."""

import collections
import csv
import sys

MOST = 1000  # pieces in one order: what is above was mistyped

table, column = sys.argv[1:]
totals: dict[str, float] = collections.defaultdict(float)
with open(table, encoding="utf-8") as file:
    for row in csv.DictReader(file):
        price, quantity = float(row["unit_price"] or 0), float(row["quantity"] or 0)
        if price > 0 and 0 < quantity <= MOST:
            totals[row[column]] += price * quantity
for name, total in sorted(totals.items(), key=lambda item: -item[1]):
    print(f"{name:<14} {total:>10,.2f}")
