#!/usr/bin/env python3
"""Runs the code cells of a notebook in order, without Jupyter, and compares what they print with the outputs in the file.

usage: run_notebook.py [--write] NOTEBOOK

--write stores the outputs instead. Cells must print; the value of a last expression is not shown. Times of searches may differ.
"""

import contextlib
import difflib
import io
import json
import re
import sys


def comparable(text):
    return re.sub(r"predicted in [0-9.]+ s", "predicted in N s", text)


def main(arguments):
    write = arguments[:1] == ["--write"]
    if len(arguments) != 1 + write or arguments[-1] in ("-h", "--help"):
        print(__doc__)
        return 2
    path = arguments[-1]
    with open(path, encoding="utf-8") as file:
        notebook = json.load(file)
    names = {"__name__": "__main__"}
    failures = 0
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(code, 1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"{path}, code cell {number}", "exec"), names)
        now = printed.getvalue()
        stored = "".join(line for output in cell["outputs"] for line in output["text"])
        if write:
            cell["execution_count"] = number
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": now.splitlines(keepends=True)}] if now else []
        elif comparable(now) != comparable(stored):
            failures += 1
            print(f"{path}: code cell {number} prints something else (tests/python/run_notebook.py --write stores it):")
            print("".join(difflib.unified_diff(stored.splitlines(True), now.splitlines(True), "stored", "now")))
    if write:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(notebook, file, indent=1, ensure_ascii=False)
            file.write("\n")
    print(f"{path}: {len(code)} code cells, {failures} with other outputs")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
