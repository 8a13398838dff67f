"""Several ranks on the GPUs that there are, even on one: plans of two to four ranks, the life of a job, and a probe. NCCL refuses two ranks
on one GPU of a host. With too few GPUs, ranks share them (SAILOR_DEVICE=shared): to NCCL every process is a host of its own, and they
communicate over sockets. On processors (--device cpu) the steps are the same, over our own sockets."""
import json
import os
import signal
import socket
import subprocess
import time

RANKS = 4  # of the largest plan
# name: layout of tests/equality (TP degrees; `,` between stages, `/` between pipelines), further options
PLANS = {"TP 2": ("2",), "sequence-parallel TP 2": ("2", "--sequence-parallel"), "P 2": ("1,1",), "D 2": ("1/1",), "unlike TP": ("2,1/1",),
         "ZeRO-1": ("1/2", "--zero", "optimizer"), "ZeRO-2": ("1/2", "--zero", "gradients"), "ZeRO-3": ("1/2", "--zero", "parameters")}
BLOCKS = 4
ENDLESS = 1_000_000  # steps of a job that a signal ends
AT_LEAST = 10  # steps under every plan
JOB = """
model: {family: gpt2, layers: %d, hidden: 64, heads: 4, sequence: 64, vocabulary: 256}
training: {global_batch: 8, steps: %d, optimizer: {name: adamw, lr: 1.0e-3}, clip_grad_norm: 1.0%s}
data: {train: text.txt, format: bytes}
"""
# Sums in another order change losses by rounding alone, and training multiplies that step by step: in fp32 no bound on the difference holds for
# any number of steps.
PRECISE = ", precision: fp64"
BOUND = 1e-9
SAME_BITS = ", precision: bf16, deterministic: true"
LIFE = "checkpoint: {directory: checkpoints, every_steps: 100, keep: 2}\nelastic: {enabled: true}\n"


def plan(*pipelines):
    """A plan, from the TP degrees of the stages of its pipelines; the GPU of a rank is its number."""
    layers, gpu, all_stages = BLOCKS + 2, 0, []
    for degrees in pipelines:
        stages = []
        for stage, tp in enumerate(degrees):
            stages.append({"layers": [stage * layers // len(degrees), (stage + 1) * layers // len(degrees)], "gpu_type": "here",
                           "zone": "here", "tp": tp, "recompute": "none", "node": socket.gethostname(), "gpus": list(range(gpu, gpu + tp))})
            gpu += tp
        all_stages.append({"microbatches": 8 // len(pipelines), "stages": stages})
    return {"sailor_plan": 1, "model": f"gpt2-{BLOCKS}x64", "global_batch": 8, "microbatch": 1, "pipelines": all_stages, "zero1": False,
            "interleave": 1}


class Training:
    """`sailor run --local`, in the background."""

    def __init__(self, bench, folder, name, the_plan, env, steps=ENDLESS, training=""):
        self.bench, self.folder = bench, folder / name
        job, plan_file = folder / f"{name}.yaml", folder / f"{name}.json"
        job.write_text(JOB % (BLOCKS, steps, training) + (LIFE if steps == ENDLESS else ""))
        plan_file.write_text(json.dumps(the_plan))
        command = [bench.programs / "sailor", "run", job, "--local", "--plan", plan_file, "--directory", self.folder]
        bench.log.write(f"$ {' '.join(map(str, command))}\n")
        bench.log.flush()
        self.process = subprocess.Popen(command, stdout=bench.log, stderr=bench.log,
                                        env={**os.environ, "SAILOR_CONFIG": "none", "SAILOR_MPIRUN": "none", **env})

    def losses(self):
        """By step; of a step that was lost and repeated, the last one."""
        return {step["step"]: step["loss"] for step in self.lines("metrics.jsonl")}

    def lines(self, name):
        file = self.folder / name
        whole = file.read_text().rpartition("\n")[0] if file.exists() else ""
        return [json.loads(line) for line in whole.splitlines()]

    def steps(self):
        return max(self.losses(), default=0)

    def events(self, name):
        return [event for event in self.lines("events.jsonl") if event["event"] == name]

    def wait(self, condition, seconds=120):
        """Whether it comes true while the job runs."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.process.poll() is None:
            if condition():
                return True
            time.sleep(0.05)
        return bool(condition())

    def goes_on(self, ranks, seconds=120):
        """Whether a plan with that many ranks comes into force, and trains."""
        def in_force():
            running = self.events("running")
            return running and running[-1]["ranks"] == ranks
        if not self.wait(in_force, seconds):
            return False
        done = len(self.losses())
        return self.wait(lambda: len(self.losses()) >= done + AT_LEAST, seconds)

    def to_the_end(self, seconds=120):
        """Waits for the last step, and returns the losses."""
        self.wait(lambda: False, seconds)
        self.end()
        return self.losses()

    def end(self, seconds=60):
        """Tells it to end, which saves its state, and waits."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for log in sorted((self.folder / "logs").glob("*")):
            self.bench.log.write(f"--- {log.name}\n{log.read_text(errors='replace')}")
        self.bench.log.flush()


def kill_in_a_sum(training):
    """Stops a rank of a replica until the others wait for its gradients, and kills it. Seconds until the first step of the next plan, or None."""
    working = training.events("running")[-1]
    processes = working["kept"] + working["joined"]
    victim = next(process["pid"] for process in processes if process["gpu"] == RANKS - 1)
    os.kill(victim, signal.SIGSTOP)
    time.sleep(0.5)  # a step that all have sent their parts of may still end
    before = training.steps()
    time.sleep(0.5)
    waited = training.steps() == before
    os.kill(victim, signal.SIGKILL)
    if not (training.goes_on(ranks=2) and waited):
        return None
    change = training.events("running")[-1]
    return training.events("resumed")[-1]["to_first_step_s"] if change["pids_kept"] else None


def life(bench, folder, env):
    """A job that loses a rank in the middle of a sum, gets it back, and is restarted from its checkpoints under other plans, on processors and
    back: the losses of a job that nothing happened to."""
    rows = bench.rows
    (folder / "text.txt").write_text("".join(f"the {n % 97}th cat sat on {n * n % 1009} mats. " for n in range(20_000)))
    losses = {}

    def train(name, the_plan, where, check):
        training = Training(bench, folder, name, the_plan, where, training=PRECISE)
        try:
            check(training)
        finally:
            training.end()
        losses.update(training.losses())

    def lose_and_replace(training):
        rows.add("ranks: unlike TP, P 2 and D 2 train", "done", ok=training.goes_on(ranks=RANKS))
        resumed_s = kill_in_a_sum(training)
        rows.add("ranks: a kill in a sum", "failed" if resumed_s is None else float(resumed_s), "s", ok=resumed_s is not None)
        rows.add("ranks: a replacement, another plan", "done", ok=training.goes_on(ranks=RANKS))

    def restart(name, ranks):
        def check(training):
            went_on = training.goes_on(ranks)
            running = training.events("running")
            saved = running[0]["steps_done"] if running and running[0]["state_from"] == "checkpoint" else 0
            rows.add(name, saved, "steps done", ok=went_on and saved == max(losses))
        return check

    train("first", plan((2,), (1, 1)), env, lose_and_replace)
    if losses:
        train("second", plan((1, 1)), {"SAILOR_DEVICE": "cpu"}, restart("ranks: its checkpoint on processors", 2))
        train("third", plan((2,), (1,)), env, restart("ranks: and back, restarted", 3))
    expected = Training(bench, folder, "undisturbed", plan((1,)), env, steps=max(losses, default=1), training=PRECISE).to_the_end()
    worst = max((abs(loss / expected[step] - 1) for step, loss in losses.items() if step in expected), default=float("inf"))
    compared = bool(losses) and sorted(losses) == sorted(expected)
    rows.add("ranks: losses, undisturbed", worst, "relative", f"<= {BOUND:g}", compared and worst <= BOUND)


def same_bits(bench, folder, env):
    losses = [Training(bench, folder, name, plan((2,), (1, 1)), env, steps=20, training=SAME_BITS).to_the_end() for name in ("once", "again")]
    different = sum(losses[0][step] != losses[1].get(step) for step in losses[0])
    bench.rows.add("ranks: losses of deterministic runs", different, "of 20 differ", "0", len(losses[0]) == 20 and losses[0] == losses[1])


def probe(bench, folder, env, transport):
    out = bench.program("sailor-probe", "--ranks", 2, "--gpu-type", "here", "--messages-only", "--max-bytes", "16MiB", "--seconds", 15,
                        "--quiet", "--out", folder / "probe", env={"SAILOR_MPIRUN": "none", "SAILOR_CONFIG": "none", **env})
    links = [] if out is None else json.loads((folder / "probe" / "network.json").read_text())["links"]
    messages = [message for link in links if link.get("transport", "sockets") == transport for message in link.get("messages", [])]
    fastest = max((message["bytes"] / message["seconds"] for message in messages), default=0.0)
    bench.rows.add(f"ranks: probe over {transport}", fastest / 1e9, "GB/s", "> 0", fastest > 0)


def environment(device):
    """Of ranks on that device, and how they communicate."""
    if device == "cpu":
        return {"SAILOR_DEVICE": "cpu"}, "sockets"
    import torch
    if torch.cuda.device_count() >= RANKS:
        return {"SAILOR_DEVICE": "gpu"}, "NCCL"
    return {"SAILOR_DEVICE": "shared", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}, "NCCL, shared"


def ranks(bench, folder, device):
    """Returns what was not covered."""
    env, how = environment(device)
    bench.rows.add("ranks: communicate over", how)
    gpus = ["--gpus"] if device == "gpu" else []
    bench.equalities([(f"ranks: {name} {dtype}", ["--backend", "process", "--layout", layout, *options, "--dtype", dtype, "--seed", "7", *gpus])
                      for name, (layout, *options) in PLANS.items() for dtype in ("fp32", "bf16")],
                     at_once=4, env=env, seconds=600)  # ranks on one GPU take turns
    life(bench, folder, env)
    same_bits(bench, folder, env)
    probe(bench, folder, env, "sockets" if device == "cpu" else "nccl")
    missing = ["nodes with several GPUs and network cards between nodes: InfiniBand, GPUDirect RDMA"]
    if device == "cpu":
        return ["NCCL and everything else of a GPU"] + missing
    if env["SAILOR_DEVICE"] == "shared":
        missing.insert(0, f"NCCL between GPUs (NVLink, PCIe, shared memory): {RANKS} GPUs would do")
    return missing
