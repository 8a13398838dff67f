"""Tells Sailor for Slurm how a training program gets on: one call per iteration on every rank.

    import sailor_steps

    for step in range(first, last):
        loss = train_one_iteration()
        sailor_steps.done(step, loss)

Copy this file next to your program; it needs nothing but Python. Without Sailor it does nothing. `sailor status` and `sailor report` then
have steps, losses and iteration times, and the run is recorded in run.json, with which `sailor validate` and `sailor calibrate` compare and
improve predictions.
"""

import atexit
import json
import os
import sys
import time
from typing import Dict, Optional, TextIO

_rank = int(os.environ.get("RANK", "0"))
_directory = os.environ.get("SAILOR_STEPS")
_file: Optional[TextIO] = None
_since = time.monotonic()
_peak_written = 0
_last: Optional[Dict[str, object]] = None  # not yet written


def done(step: int, loss: Optional[float] = None) -> None:
    """An iteration is done: all its microbatches and the update. `step` counts from 0. `loss`: its mean over the global batch, if known.

    Rank 0 writes a line per iteration, other ranks only when their peak of memory has grown, and at their end. The time of an iteration
    is that since the previous call: call it where the program waits for its GPU anyway, for instance after `loss.item()`.
    """
    global _since, _last
    if _directory is None:
        return
    now = time.monotonic()
    _last = {
        "generation": int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) + 1,
        "step": step + 1,
        "loss": None if loss is None else float(loss),
        "step_s": now - _since,
        "peak_bytes": peak_bytes(),
    }
    _since = now
    if _rank == 0 or _last["peak_bytes"] > 1.01 * _peak_written:
        _write()


def peak_bytes() -> int:
    """Peak memory of this rank so far: of its GPU as PyTorch reserved it, else of the process."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return int(torch.cuda.max_memory_reserved())
    # getrusage() would count the process that started this one.
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) * 1024


def _write() -> None:
    global _directory, _file, _peak_written, _last
    if _directory is None or _last is None:
        return
    try:
        if _file is None:
            _file = open(os.path.join(_directory, f"rank-{_rank}.jsonl"), "a", encoding="utf-8")
        _file.write(json.dumps(_last) + "\n")
        _file.flush()
    except OSError as error:  # does not end the training
        print(f"sailor_steps: {error}", file=sys.stderr)
        _directory = None
    _peak_written = _last["peak_bytes"]
    _last = None


def name_modules() -> None:
    """Names the calls of all modules for Nsight Systems (NVTX), so that `sailor profile --trace` finds the layers in its report.

    Call it once, before training, and profile with `nsys profile --trace=cuda,nvtx --pytorch=autograd-nvtx`. Needs PyTorch 2.1 or later.
    """
    import torch

    names: Dict[object, str] = {}
    counts: Dict[str, int] = {}

    def begin(module: torch.nn.Module, _arguments: object) -> None:
        if module not in names:
            of_class = type(module).__name__
            names[module] = f"nn.Module: {of_class}_{counts.get(of_class, 0)}"
            counts[of_class] = counts.get(of_class, 0) + 1
        torch.cuda.nvtx.range_push(names[module])

    def end(_module: torch.nn.Module, _arguments: object, _result: object) -> None:
        torch.cuda.nvtx.range_pop()

    torch.nn.modules.module.register_module_forward_pre_hook(begin)
    torch.nn.modules.module.register_module_forward_hook(end, always_call=True)


atexit.register(_write)
