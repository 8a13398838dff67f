"""What the checks of tests/gpu have in common: the table, and running the programs."""
import csv
import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor


class Rows:
    def __init__(self):
        self.rows = []
        print(f"{'CHECK':<34} {'VALUE':>12} {'UNIT':<10} {'BOUND':<14} OK", flush=True)

    def add(self, check, value, unit="", bound="", ok=None):
        """`ok` is None where a figure is only told."""
        self.rows.append({"check": check, "value": value, "unit": unit, "bound": bound, "ok": ok})
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        mark = {None: "-", True: "yes", False: "NO"}[ok]
        print(f"{check:<34} {text:>12} {unit:<10} {bound:<14} {mark}", flush=True)

    def failed(self):
        return [row["check"] for row in self.rows if row["ok"] is False]


class Bench:
    def __init__(self, programs, rows, log):
        self.programs, self.rows, self.log = programs, rows, log
        self.writing = threading.Lock()

    def write(self, text):
        with self.writing:
            self.log.write(text)
            self.log.flush()

    def run(self, *command, env=None, seconds=240):
        """Standard output, or None after a failure, which is in the log."""
        called = f"$ {' '.join(map(str, command))}\n"
        try:
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=seconds,
                                  env={**os.environ, **(env or {})})
        except subprocess.TimeoutExpired:
            self.write(f"{called}took longer than {seconds} s\n")
            return None
        self.write(called + done.stdout + done.stderr)
        return done.stdout if done.returncode == 0 else None

    def program(self, name, *arguments, **options):
        return self.run(self.programs / name, *arguments, **options)

    def equalities(self, comparisons, at_once, env=None, seconds=240):
        """A row for each comparison of losses and gradients by tests/equality, which has the bounds: `comparisons` are names and arguments.
        Some run at once, since most of their time is the reference's, on processors; each process takes 0.5 to 1.5 GB of a GPU."""
        with ThreadPoolExecutor(min(at_once, os.cpu_count())) as workers:
            outs = workers.map(lambda arguments: self.program("equality", *arguments, env=env, seconds=seconds),
                               [arguments for _, arguments in comparisons])
            for (name, _), out in zip(comparisons, outs):
                rows = [] if out is None else list(csv.DictReader(line for line in out.splitlines() if not line.startswith("#")))
                worst = max((float(row["grad_err"]) for row in rows), default=float("inf"))
                self.rows.add(name, worst, "gradient", "equality's", bool(rows) and all(row["ok"] == "yes" for row in rows))
