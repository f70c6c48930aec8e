"""What a benchmark says: a JSON line per measurement, tables at the end."""

import json
import statistics
import sys


def median(rounds, value):
    return statistics.median(value(r) for r in rounds)


class Report:
    def __init__(self):
        self.lines = []

    def add(self, case, **fields):
        line = {"case": case, **{k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in fields.items()}}
        self.lines.append(line)
        print(json.dumps(line), flush=True)
        return line

    def write(self, path):
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))

    def print_tables(self, titles):
        """On standard error, the lines of each case, with its title, the columns in the order they came."""
        for name in dict.fromkeys(line["case"] for line in self.lines):
            rows = [line for line in self.lines if line["case"] == name]
            columns = list(dict.fromkeys(c for row in rows for c in row if c != "case"))
            cells = [columns] + [[str(row.get(c, "")) for c in columns] for row in rows]
            widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
            print(f"\n{name}: {titles[name]}", file=sys.stderr)
            for row in cells:
                print("  " + "  ".join(c.rjust(w) for c, w in zip(row, widths)), file=sys.stderr)
