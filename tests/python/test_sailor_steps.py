"""trainer/python/sailor_steps.py in programs of its own, as ranks have it."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parents[2] / "trainer" / "python"

PROGRAM = """
import sailor_steps, time
grown = []
for step in range(4):
    time.sleep(0.02)
    grown.append(bytearray(64 << 20) if step == 2 else None)
    sailor_steps.done(step, 1.0 / (step + 1))
"""


def run(program, **environment):
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("SAILOR_", "TORCHELASTIC_", "RANK"))}
    variables.update(environment, PYTHONPATH=str(HERE), PYTHONDONTWRITEBYTECODE="1")
    return subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=60)


class Steps(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def lines(self, rank):
        path = Path(self.directory) / f"rank-{rank}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def test_rank_0_writes_every_step(self):
        done = run(PROGRAM, SAILOR_STEPS=self.directory, RANK="0", TORCHELASTIC_RESTART_COUNT="2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = self.lines(0)
        self.assertEqual([line["step"] for line in lines], [1, 2, 3, 4])
        self.assertEqual({line["generation"] for line in lines}, {3})
        self.assertEqual([line["loss"] for line in lines], [1.0, 0.5, 1 / 3, 0.25])
        for line in lines:
            self.assertGreaterEqual(line["step_s"], 0.02)
            self.assertGreater(line["peak_bytes"], 1 << 20)
        self.assertGreater(lines[2]["peak_bytes"], lines[1]["peak_bytes"] + (60 << 20))

    def test_other_ranks_write_when_their_memory_grows_and_at_their_end(self):
        self.assertEqual(run(PROGRAM, SAILOR_STEPS=self.directory, RANK="3").returncode, 0)
        self.assertEqual([line["step"] for line in self.lines(3)], [1, 3, 4])

    def test_without_sailor_nothing_is_written(self):
        done = run(PROGRAM, RANK="0")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_a_directory_that_is_gone_does_not_end_the_training(self):
        done = run(PROGRAM, SAILOR_STEPS=self.directory + "/absent", RANK="0")
        self.assertEqual(done.returncode, 0)
        self.assertIn("absent", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_tensors_and_arrays_are_losses(self):
        program = "import sailor_steps\nclass Loss:\n  def __float__(self): return 2.5\nsailor_steps.done(0, Loss())"
        self.assertEqual(run(program, SAILOR_STEPS=self.directory).returncode, 0)
        self.assertEqual(self.lines(0)[0]["loss"], 2.5)

    def test_modules_are_named_for_nsight_systems(self):
        program = """
import sys, types
hooks, ranges = {}, []
torch, of_modules = types.ModuleType("torch"), types.SimpleNamespace()
of_modules.register_module_forward_pre_hook = lambda hook: hooks.update(begin=hook)
of_modules.register_module_forward_hook = lambda hook, always_call: hooks.update(end=hook, always=always_call)
torch.nn = types.SimpleNamespace(Module=object, modules=types.SimpleNamespace(module=of_modules))
torch.cuda = types.SimpleNamespace(nvtx=types.SimpleNamespace(range_push=ranges.append, range_pop=lambda: ranges.append("end")))
sys.modules["torch"] = torch

class Block:
    def __call__(self):
        hooks["begin"](self, ())
        hooks["end"](self, (), None)

import sailor_steps
sailor_steps.name_modules()
first, second = Block(), Block()
for block in (first, second, first):
    block()
print(hooks["always"], ranges)
"""
        done = run(program)
        self.assertEqual(done.stderr, "")
        expected = ["nn.Module: Block_0", "end", "nn.Module: Block_1", "end", "nn.Module: Block_0", "end"]
        self.assertEqual(done.stdout.strip(), f"True {expected}")


if __name__ == "__main__":
    unittest.main()
