"""Proves the GPU path on a machine with a GPU, and measures it: what tests/gpu/run.sh runs. One row per check on stdout, all of them in
gpu.json, and what was not covered. Exit 1 when a check fails."""
import argparse
import csv
import json
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench import Bench, Rows
from check_ranks import ranks

HERE = Path(__file__).resolve().parent
BENCH = HERE.parent / "bench" / "trainer"
PARTS = ("kernels", "communicator", "equality", "ranks", "prediction", "speed")
GPU_TYPE = "measured"  # what this GPU is called in the files of this run


@dataclass
class Model:
    """Of a step: `sequences` in each of two microbatches. The last one has the layers of an 8B model, but four of 32."""
    layers: int
    hidden: int
    heads: int
    sequences: int
    family: str = "gpt2"
    kv_heads: int = 0
    feed_forward: int = 0
    sequence: int = 1024
    vocabulary: int = 50257

    def flops_per_token(self):
        """Forward and backward: six per parameter of a product, and the attention's, causal ones counted in full as everybody does."""
        kv_share = self.kv_heads / self.heads if self.kv_heads else 1
        mlp = 3 * self.feed_forward if self.family == "llama" else 8 * self.hidden
        block = self.hidden * ((2 + 2 * kv_share) * self.hidden + mlp)
        return 6 * (self.layers * block + self.vocabulary * self.hidden) + 12 * self.layers * self.hidden * self.sequence


MICROBATCHES = 2
MODELS = {
    "gpt2-124m": Model(12, 768, 12, 16),
    "gpt2-1.5b": Model(48, 1600, 25, 8),
    "llama-1b": Model(16, 2048, 32, 4, "llama", 8, 8192, 2048, 128256),
    "llama-8b": Model(4, 4096, 32, 2, "llama", 8, 14336, 4096, 128256),
}


def kernels(bench):
    """Every device kernel against its formula, and how fast it moves its bytes, beside a copy."""
    out = bench.program("kernel_tests", "--gtest_brief=1")
    bench.rows.add("kernels: tests", "failed" if out is None else "done", ok=out is not None)
    out = bench.program("bench_kernels")
    for row in csv.DictReader((out or "").splitlines()):
        bench.rows.add(f"{row['model']}: {row['kernel']}", float(row["gb_per_s"]), "GB/s", f"{100 * float(row['of_copy']):.0f} % of copy")
    bench.rows.add("kernels: speed", "failed" if out is None else "done", ok=out is not None)


def communicator(bench):
    out = bench.program("nccl_tests", "--gtest_filter=RealLibraries.*")
    skipped = out is None or "SKIPPED" in out
    bench.rows.add("communicator: abort and rebuild", "failed" if skipped else "done", ok=not skipped)


def equality(bench, count):
    """Losses and gradients of the trainer on the GPU against plain autograd on processors, every step."""
    families = (bench.program("equality", "--families") or "").split()
    bench.rows.add("equality: families", len(families), ok=bool(families))
    common = ["--gpus", "--layout", "1", "--count", str(count)]
    comparisons = [(f"equality {family} {dtype}", common + ["--family", family, "--dtype", dtype, "--seed", "7"])
                   for family in families for dtype in ("fp32", "bf16", "fp16")]
    # A checkpoint from the device, gone on from on the device.
    comparisons.append(("checkpoint from and to the device", common + ["--seed", "41", "--resume"]))
    bench.equalities(comparisons, at_once=8)


def job_file(folder, name, dtype="bf16"):
    model = MODELS[name]
    more = f"kv_heads: {model.kv_heads}, feed_forward: {model.feed_forward}, " if model.family == "llama" else ""
    path = folder / f"{name}.yaml"
    path.write_text(
        f"model: {{name: {name}, family: {model.family}, layers: {model.layers}, hidden: {model.hidden}, heads: {model.heads}, {more}"
        f"sequence: {model.sequence}, vocabulary: {model.vocabulary}}}\n"
        f"training: {{global_batch: {model.sequences * MICROBATCHES}, precision: {dtype}, steps: 1, "
        f"optimizer: {{name: adamw, lr: 3.0e-4, weight_decay: 0.1}}}}\n"
        "data: {train: none}\n")
    return path


def our_step(bench, folder, name, steps):
    """Seconds of a step, bytes of the device's memory that are used after it; None after a failure."""
    out = bench.program("bench_trainer", job_file(folder, name), "--gpu", "--microbatches", MICROBATCHES, "--threads", 8,
                        "--warm-up", 3, "--steps", steps)
    if out is None:
        return None
    fields = out.strip().split(",")
    return float(fields[4]), int(fields[6]) << 20


def speed(bench, folder, name, peak_flops, steps):
    model = MODELS[name]
    ours = our_step(bench, folder, name, steps)
    if ours is None:
        return bench.rows.add(f"{name}: step", "failed", ok=False)
    tokens = model.sequences * MICROBATCHES * model.sequence / ours[0]
    bench.rows.add(f"{name}: tokens", tokens, "1/s")
    bench.rows.add(f"{name}: MFU", 100 * tokens * model.flops_per_token() / peak_flops, "%", "goal 50")
    bench.rows.add(f"{name}: memory", ours[1] / 2**30, "GiB")
    for mode, dtype in (("eager", "autocast"), ("eager", "bf16"), ("compile", "bf16")):
        arguments = ["--family", model.family, "--layers", model.layers, "--hidden", model.hidden, "--heads", model.heads,
                     "--kv-heads", model.kv_heads, "--feed-forward", model.feed_forward, "--sequence", model.sequence,
                     "--vocabulary", model.vocabulary, "--batch", model.sequences, "--microbatches", MICROBATCHES, "--device", "cuda",
                     "--dtype", dtype, "--warm-up", 3, "--steps", steps] + (["--compile"] if mode == "compile" else [])
        out = bench.run(sys.executable, BENCH / "pytorch_step.py", *arguments)
        required = mode == "eager" and name == "gpt2-1.5b"
        if out is None:
            bench.rows.add(f"{name}: PyTorch {mode}, {dtype}", "failed", ok=False if required else None)
            continue
        ratio = tokens / float(out.strip().rsplit(",", 1)[1])
        bench.rows.add(f"{name}: against {mode}, {dtype}", ratio, "x", ">= 1" if required else "", ratio >= 1 if required else None)


def prediction(bench, folder, name, seconds):
    """The simulator, from a profile of this run, against measured steps."""
    model = MODELS[name]
    job = job_file(folder, name)
    profile = bench.program("sailor-profile", job, "--gpu-type", GPU_TYPE, "--tp", 1, "--microbatches", model.sequences, "--seconds", seconds,
                            "--out", folder / "profiles", seconds=seconds + 240)
    bench.rows.add(f"{name}: profile", "failed" if profile is None else "done", ok=profile is not None)
    if profile is None:
        return
    (folder / "catalog.yaml").write_text(f"sailor_catalog: 1\ngpu_types:\n  {GPU_TYPE}: {{memory: 140GiB, usd_per_hour: 1}}\n")
    (folder / "sailor.yaml").write_text("sailor_site: 1\ncatalog: catalog.yaml\nprofiles: [profiles]\ndefault_zone: {zone: here, region: here}\n")
    plan = folder / "plan.json"
    plan.write_text(json.dumps({
        "sailor_plan": 1, "model": name, "global_batch": model.sequences * MICROBATCHES, "microbatch": model.sequences,
        "pipelines": [{"microbatches": MICROBATCHES,
                       "stages": [{"layers": [0, model.layers + 2], "gpu_type": GPU_TYPE, "zone": "here", "tp": 1}]}],
        "zero1": False, "interleave": 1}))
    out = bench.program("sailor", "simulate", job, plan, "--config", folder / "sailor.yaml", "--format", "json")
    ours = our_step(bench, folder, name, 8)
    if out is None or ours is None:
        return bench.rows.add(f"{name}: prediction", "failed", ok=False)
    predicted = json.loads(out)["candidates"][0]["prediction"]
    for what, forecast, measured in (("step time", predicted["iteration_s"], ours[0]),
                                     ("memory", predicted["stages"][0]["memory"]["total_bytes"], ours[1])):
        error = 100 * (forecast / measured - 1)
        bench.rows.add(f"{name}: {what} predicted", error, "% off", "within 10", abs(error) <= 10)


def product_flops():
    """What large bf16 products reach here: the peak that the MFU is a part of, unless --peak-flops says it."""
    import torch
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for timed in (False, True):
        start.record()
        for _ in range(20):
            a @ b
        end.record()
        torch.cuda.synchronize()
    return 20 * 2 * 8192**3 / (1e-3 * start.elapsed_time(end))


def check(part, bench, folder, args):
    """Returns what it could not cover."""
    if part == "kernels":
        kernels(bench)
    elif part == "communicator":
        communicator(bench)
    elif part == "equality":
        equality(bench, count=2)
    elif part == "ranks":
        return ranks(bench, folder, args.device)
    elif part == "prediction":
        for name, seconds in (("gpt2-124m", 25), ("gpt2-1.5b", 40)):
            prediction(bench, folder, name, seconds)
    elif part == "speed":
        products = product_flops()
        bench.rows.add("bf16 products", products / 1e12, "TFLOP/s")
        for name in MODELS:
            speed(bench, folder, name, args.peak_flops or products, steps=8)
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="directory of the programs")
    parser.add_argument("--out", type=Path, required=True, help="directory for gpu.json and the log")
    parser.add_argument("--peak-flops", type=float, help="of the data sheet, bf16 (default: what large products reach here)")
    parser.add_argument("--only", default=".", help=f"only the parts whose names match: {', '.join(PARTS)}")
    parser.add_argument("--device", default="gpu", choices=("gpu", "cpu"), help="cpu: only the ranks, on processors")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rows, missing = Rows(), []
    with open(args.out / "gpu.log", "w") as log, tempfile.TemporaryDirectory() as scratch:
        bench, folder = Bench(args.programs.resolve(), rows, log), Path(scratch)
        for part in PARTS:
            if re.search(args.only, part) and (args.device == "gpu" or part == "ranks"):
                missing += check(part, bench, folder, args)
            else:
                missing.append(f"{part}, left out by --only or --device")
    (args.out / "gpu.json").write_text(json.dumps({"sailor_gpu_check": 1, "rows": rows.rows, "not_covered": missing}, indent=1) + "\n")
    failed = rows.failed()
    for what in missing:
        print(f"not covered: {what}")
    print(f"{len(rows.rows)} rows, {len(failed)} failed" + (": " + ", ".join(failed) if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
