#!/usr/bin/env python3
"""Writes the data sets in MosaicML's format that the unit tests read, with the streaming library (0.13.0):

    pip install mosaicml-streaming
    tests/transformers/mds_golden.py tests/golden/fixtures/mds

Token i of every data set is 7919 i modulo 50000.
"""
import pathlib
import sys

import numpy as np
from streaming import MDSWriter
from streaming.base.util import merge_index


class Tokens:
    def __init__(self):
        self.next = 0

    def take(self, count, dtype):
        tokens = np.array([7919 * i % 50000 for i in range(self.next, self.next + count)], dtype)
        self.next += count
        return tokens


def write(out, columns, samples, **options):
    with MDSWriter(out=str(out), columns=columns, **options) as writer:
        for sample in samples:
            writer.write(sample)


def main():
    out = pathlib.Path(sys.argv[1])
    # As LLM Foundry concatenates texts, in three shards.
    tokens = Tokens()
    write(out / "concatenated", {"tokens": "bytes"}, ({"tokens": tokens.take(16, np.int64).tobytes()} for _ in range(20)),
          size_limit=1200, hashes=["sha1"])
    # Samples of several lengths, whose arrays have shapes of one and of two bytes.
    tokens = Tokens()
    write(out / "arrays", {"tokens": "ndarray:int32"}, ({"tokens": tokens.take(n, np.int32)} for n in [5, 1, 255, 256, 300, 2]))
    # The same with other columns before and behind, one of them of varying size.
    tokens = Tokens()
    write(out / "columns", {"id": "int", "input_ids": "ndarray:uint16", "text": "str", "weight": "float32"},
          ({"id": n, "input_ids": tokens.take(n, np.uint16), "text": f"text of {n} \u00e9", "weight": 0.5} for n in [3, 7, 1]))
    tokens = Tokens()
    write(out / "fixed", {"tokens": "ndarray:uint32:6"}, ({"tokens": tokens.take(6, np.uint32)} for _ in range(4)))
    tokens = Tokens()
    write(out / "free", {"tokens": "ndarray"}, ({"tokens": tokens.take(n, t)} for n, t in [(3, np.uint16), (2, np.int64)]))
    tokens = Tokens()
    write(out / "axes", {"tokens": "ndarray:uint16"}, ({"tokens": tokens.take(2 * n, np.uint16).reshape(2, n)} for n in [4, 3]))
    tokens = Tokens()
    for part in ("a", "b"):
        write(out / "merged" / part, {"tokens": "ndarray:uint16"}, ({"tokens": tokens.take(n, np.uint16)} for n in [4, 3]))
    merge_index(str(out / "merged"))
    for part in ("a", "b"):
        (out / "merged" / part / "index.json").unlink()
    write(out / "compressed", {"text": "str"}, [{"text": "a text"}], compression="zstd:3")


if __name__ == "__main__":
    main()
