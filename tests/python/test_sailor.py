"""The package `sailor` compared with the program's own output. python_test.sh runs this among the files of tests/golden/fixtures."""

import contextlib
import importlib.metadata
import io
import json
import os
import pickle
import re
import stat
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import sailor

PROGRAM = os.environ["SAILOR_PROGRAM"]
JOB = {  # job.yaml
    "model": {"name": "tiny", "family": "gpt2", "layers": 4, "hidden": 64, "heads": 4, "sequence": 128, "vocabulary": 256},
    "training": {"global_batch": 8, "steps": 10},
    "data": {"train": "text.bin"},
}
CLUSTER = {  # snapshot.yaml
    "sailor_snapshot": 1,
    "nodes": [
        {"name": "q1", "partition": "fast", "zone": "east", "region": "land", "gpu_type": "quick", "gpus": 2},
        {"name": "s1", "partition": "slow", "zone": "west", "region": "land", "gpu_type": "steady", "gpus": 4, "free_gpus": [1, 2, 3]},
        {"name": "s2", "partition": "slow", "zone": "west", "region": "land", "gpu_type": "steady", "gpus": 2},
    ],
    "egress_usd_per_gb": {"east": {"west": 0.01}, "west": {"east": 0.01}},
    "not_free": ["s3: drained"],
}
FILES = ("job.yaml", "snapshot.yaml")


def program(*arguments):
    """Exit code, standard output and the lines of standard error of the program."""
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, encoding="utf-8")
    return done.returncode, done.stdout, done.stderr.splitlines()


def planned(*options):
    return json.loads(program("plan", "job.yaml", "--cluster=snapshot.yaml", "--format=json", *options)[1])


def without_times(table):
    return re.sub(r"predicted in [0-9.]+ s", "predicted in N s", table)


@contextlib.contextmanager
def script(text):
    """A program with these lines of shell."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "sailor")
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(stat.S_IRWXU)
        yield path


class Plan(unittest.TestCase):
    def test_has_the_programs_values(self):
        result = sailor.plan(*FILES)
        expected = planned()
        self.assertEqual(result.details, expected)
        self.assertEqual([one.plan for one in result.candidates], [one["plan"] for one in expected["candidates"]])
        best = expected["candidates"][0]
        self.assertEqual(result.plan, best["plan"])
        self.assertEqual(result.prediction.details, best["prediction"])
        for name in ("iteration_s", "iterations_per_s", "usd_per_iteration", "peak_memory_bytes", "fits", "uncertainty"):
            self.assertEqual(getattr(result.prediction, name), best["prediction"][name], name)
        self.assertEqual(result.prediction.tokens_per_s, best["tokens_per_s"])
        self.assertEqual(result.candidates[0].bottleneck, best["bottleneck"])
        self.assertEqual(result.bound_iteration_s, expected["bound_iteration_s"])
        self.assertIs(result.complete, True)

    def test_has_values_of_the_annotated_types(self):
        prediction = sailor.plan(JOB, CLUSTER).prediction
        self.assertIs(type(prediction.iteration_s), float)
        self.assertIs(type(prediction.tokens_per_s), float)
        self.assertIs(type(prediction.peak_memory_bytes), int)
        self.assertIs(type(prediction.fits), bool)
        self.assertIsInstance(prediction.joules_per_iteration, (float, type(None)))
        self.assertGreater(prediction.iteration_s, 0)
        self.assertAlmostEqual(prediction.iterations_per_s, 1 / prediction.iteration_s)

    def test_has_the_programs_table_and_notes(self):
        result = sailor.plan(*FILES)
        code, table, lines = program("plan", *FILES[:1], "--cluster=snapshot.yaml")
        self.assertEqual(code, 0)
        self.assertEqual(without_times(result.table), without_times(table))
        self.assertEqual([f"sailor: note: {note}" for note in result.notes], lines)
        self.assertEqual(str(result), result.table)
        plan, prediction, table = result
        self.assertEqual((plan, prediction, table), (result.plan, result.prediction, result.table))

    def test_of_dicts_is_that_of_files(self):
        self.assertEqual(sailor.plan(JOB, CLUSTER).details, sailor.plan(*FILES).details)
        self.assertEqual(sailor.plan(Path("job.yaml"), CLUSTER).details, sailor.plan(JOB, Path("snapshot.yaml")).details)

    def test_counts_gpus_by_type(self):
        for candidate in sailor.plan(JOB, CLUSTER).candidates:
            counts = {}
            for rank in sailor.ranks(candidate.plan):
                counts[rank.gpu_type] = counts.get(rank.gpu_type, 0) + 1
            self.assertEqual(candidate.gpus, counts)

    def test_obeys_options(self):
        for options, flags in (
            ({"top": 1}, ["--top=1"]),
            ({"objective": "cost"}, ["--objective=cost"]),
            ({"max_gpus": {"quick": 1, "steady": {"west": 2}, "total": 2}}, ["--max-gpus=quick=1,steady@west=2,total=2"]),
            ({"max_gpus": "quick=1"}, ["--max-gpus=quick=1"]),
            ({"zones": ["east", "west"]}, ["--zones=east,west"]),
            ({"zones": "west"}, ["--zones=west"]),
            ({"allow": ("zero1", "recompute")}, ["--allow=zero1,recompute"]),
            ({"max_cost": 0.002, "min_throughput": 1.5}, ["--max-cost=0.002", "--min-throughput=1.5"]),
            ({"search_space": "paper", "cost_model": "published"}, ["--search-space=paper", "--cost-model=published"]),
            ({"trainer": "megatron-core", "time_limit": 30}, ["--trainer=megatron-core", "--time-limit=30"]),
            ({"effort": 0.5}, ["--effort=0.5"]),
            ({"config": Path("sailor.yaml"), "objective": None}, ["--config=sailor.yaml"]),
        ):
            with self.subTest(flags=flags):
                self.assertEqual(sailor.plan(*FILES, **options).details, planned(*flags))

    def test_replans_from_a_previous_plan(self):
        previous = sailor.plan(JOB, CLUSTER, objective="cost")
        with tempfile.TemporaryDirectory() as directory:
            previous.save(Path(directory, "plan.json"))
            expected = planned(f"--previous={directory}/plan.json")
        self.assertEqual(sailor.plan(JOB, CLUSTER, previous=previous.plan).details, expected)

    def test_saves_the_plan_that_the_program_writes(self):
        with tempfile.TemporaryDirectory() as directory:
            ours, theirs = Path(directory, "ours.json"), Path(directory, "theirs.json")
            sailor.plan(JOB, CLUSTER).save(ours)
            program("plan", "job.yaml", "--cluster=snapshot.yaml", "-o", str(theirs))
            self.assertEqual(json.loads(ours.read_text()), json.loads(theirs.read_text()))
            self.assertEqual(sailor.simulate(ours, *FILES).details, sailor.simulate(theirs, *FILES).details)

    def test_asks_for_the_live_cluster_once(self):
        with tempfile.TemporaryDirectory() as directory:
            counting = Path(directory, "sailor-cluster")
            lines = ["#!/bin/sh", f"echo asked >> {directory}/count", "echo 'sailor: note: live' >&2", f"cat {os.path.abspath('snapshot.yaml')}"]
            counting.write_text("\n".join(lines) + "\n")
            counting.chmod(stat.S_IRWXU)
            with mock.patch.dict(os.environ, SAILOR_LIBEXEC=directory):
                live = sailor.plan(JOB)
            self.assertEqual(Path(directory, "count").read_text(), "asked\n")
        self.assertEqual(live.details["candidates"], planned()["candidates"])
        self.assertEqual(live.notes, ["live", *sailor.plan(JOB, CLUSTER).notes])

    def test_takes_relative_paths_from_the_working_directory(self):
        source = Path(os.environ["SAILOR_SOURCE_DIR"], "etc/models/llama-3.2-1b.json")
        nodes = {"sailor_snapshot": 1, "nodes": [{"name": "h", "zone": "here", "gpu_type": "H100-80", "gpus": 8}]}
        with tempfile.TemporaryDirectory(dir=".") as directory:
            relative = os.path.relpath(directory)
            Path(relative, "config.json").write_bytes(source.read_bytes())
            Path(relative, "site.yaml").write_text("sailor_site: 1\n")
            for model in (relative, Path(relative)):
                job = {"model": {"from": model, "sequence": 1024}, "training": {"global_batch": 64, "precision": "bf16", "steps": 10}}
                result = sailor.plan(job, nodes, config=Path(relative, "site.yaml"), top=1)
                self.assertEqual(result.candidates[0].gpus, {"H100-80": 8})

    def test_takes_numbers_that_are_no_python_numbers(self):
        class Scalar:  # as those of NumPy
            def item(self):
                return 8

        job = {**JOB, "training": {"global_batch": Scalar(), "steps": 10}}
        self.assertEqual(sailor.plan(job, CLUSTER).details, planned())

    def test_leaves_no_files(self):
        with tempfile.TemporaryDirectory() as directory, mock.patch.object(tempfile, "tempdir", directory):
            sailor.plan(JOB, CLUSTER)
            for job in ({**JOB, "trainin": 1}, {**JOB, "data": {1, 2}}):
                with self.assertRaises(sailor.SailorError):
                    sailor.plan(job, CLUSTER)
            self.assertEqual(os.listdir(directory), [])

    def test_may_run_in_threads(self):
        batches = [8, 16, 32, 64]
        jobs = [{**JOB, "training": {"global_batch": batch, "steps": 10}} for batch in batches]
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(lambda job: sailor.plan(job, CLUSTER), jobs))
        self.assertEqual([result.plan["global_batch"] for result in together], batches)
        self.assertEqual([result.details for result in together], [sailor.plan(job, CLUSTER).details for job in jobs])

    def test_is_a_plain_value(self):
        result = sailor.plan(JOB, CLUSTER)
        self.assertEqual(pickle.loads(pickle.dumps(result)), result)
        self.assertIn("iteration_s=", repr(result))
        self.assertLess(len(repr(result)), 3000)


class OtherVerbs(unittest.TestCase):
    def test_simulate_has_the_programs_values(self):
        simulated = sailor.simulate("plan.json", *FILES)
        code, text, _ = program("simulate", "job.yaml", "plan.json", "--cluster=snapshot.yaml", "--format=json")
        self.assertEqual(simulated.details, json.loads(text))
        self.assertEqual(bool(simulated.problems), code == 3)
        self.assertEqual(simulated.prediction.details, json.loads(text)["candidates"][0]["prediction"])
        self.assertEqual(simulated.table, program("simulate", "job.yaml", "plan.json", "--cluster=snapshot.yaml")[1])

    def test_simulate_says_why_a_plan_cannot_run(self):
        plan = sailor.plan(JOB, CLUSTER).plan
        self.assertEqual(sailor.simulate(plan, JOB, CLUSTER).problems, [])
        self.assertEqual(sailor.simulate(plan, JOB).problems, [])
        fewer = sailor.simulate(plan, JOB, {**CLUSTER, "nodes": CLUSTER["nodes"][1:]})
        self.assertEqual(len(fewer.problems), 1)
        self.assertRegex(fewer.problems[0], r"^plan: does not fit cluster: ")
        self.assertGreater(fewer.prediction.iteration_s, 0)

    def test_explain_has_the_programs_values(self):
        explained = sailor.explain(*FILES)
        expected = json.loads(program("explain", "job.yaml", "--cluster=snapshot.yaml", "--format=json")[1])
        self.assertEqual(explained.details, expected)
        self.assertEqual(explained.chosen.plan, expected["chosen"]["plan"])
        self.assertEqual(explained.what_if, expected["what_if"])
        self.assertIn("WHAT IF", explained.table)
        given = sailor.explain(JOB, CLUSTER, json.loads(Path("plan.json").read_text()))
        self.assertIs(given.chosen.details["given"], True)

    def test_pareto_has_the_programs_values(self):
        front = sailor.pareto(*FILES, points=3)
        expected = json.loads(program("pareto", "job.yaml", "--cluster=snapshot.yaml", "--points=3", "--format=json")[1])
        self.assertEqual(front.details, expected)
        costs = [point.prediction.usd_per_iteration for point in front.points]
        self.assertEqual(costs, sorted(costs))
        self.assertGreater(len(costs), 1)
        self.assertIsNone(front.points[0].bottleneck)


class Errors(unittest.TestCase):
    def error(self, call, kind=sailor.SailorError):
        with self.assertRaises(kind) as caught:
            call()
        self.assertIs(type(caught.exception), kind)
        self.assertNotIn("\n", str(caught.exception))
        self.assertNotIn("/sailor-", str(caught.exception))  # temporary directories
        return caught.exception

    def test_names_a_wrong_key(self):
        error = self.error(lambda: sailor.plan({**JOB, "trainin": {}}, CLUSTER))
        self.assertEqual(str(error), 'job: unknown key "trainin", did you mean "training"?')
        self.assertEqual(error.exit_code, 2)
        error = self.error(lambda: sailor.plan(JOB, {**CLUSTER, "node": []}))
        self.assertIn('cluster: unknown key "node"', str(error))
        error = self.error(lambda: sailor.simulate({"sailor_plan": 1}, JOB))
        self.assertEqual(str(error), 'plan: missing key "model"')

    def test_names_a_missing_file(self):
        error = self.error(lambda: sailor.plan("nowhere.yaml", CLUSTER))
        self.assertEqual((str(error)[:13], error.exit_code), ("nowhere.yaml:", 2))

    def test_names_what_json_cannot_hold(self):
        self.assertIn("job: ", str(self.error(lambda: sailor.plan({"model": {1, 2}}, CLUSTER))))
        self.assertIn("cluster: ", str(self.error(lambda: sailor.plan(JOB, {"nodes": float("nan")}))))

    def test_has_the_reason_when_no_plan_is_feasible(self):
        error = self.error(lambda: sailor.plan(JOB, CLUSTER, max_cost=1e-9), sailor.NoPlan)
        self.assertEqual(error.exit_code, 3)
        expected = planned("--max-cost=1e-9")
        self.assertEqual(error.reason, expected["reason"])
        self.assertEqual(error.rejected, expected["rejected"])
        self.assertEqual(str(error), f"job: no feasible plan: {error.reason}")
        self.error(lambda: sailor.pareto(JOB, CLUSTER, max_cost=1e-9), sailor.NoPlan)
        self.error(lambda: sailor.explain(JOB, CLUSTER, max_cost=1e-9), sailor.NoPlan)

    def test_is_no_plan_when_the_cluster_has_no_nodes(self):
        error = self.error(lambda: sailor.plan(JOB, {"sailor_snapshot": 1, "nodes": []}), sailor.NoPlan)
        self.assertEqual(error.reason, "the cluster has no nodes (snapshot: cluster)")

    def test_is_a_time_limit_when_no_plan_was_found_in_time(self):
        error = self.error(lambda: sailor.plan(JOB, CLUSTER, time_limit=1e-9), sailor.TimeLimit)
        self.assertEqual(error.exit_code, 4)
        self.assertIsInstance(error, sailor.NoPlan)

    def test_says_that_there_is_no_live_cluster(self):
        with mock.patch.dict(os.environ, SAILOR_CONFIG="nowhere.yaml"):
            error = self.error(lambda: sailor.plan(JOB))
        self.assertIn("nowhere.yaml", str(error))

    def test_rejects_unknown_options(self):
        with self.assertRaisesRegex(TypeError, "no option 'objektive'; options: objective, max_cost"):
            sailor.plan(JOB, CLUSTER, objektive="cost")
        self.assertIn('is "speed"', str(self.error(lambda: sailor.plan(JOB, CLUSTER, objective="speed"))))

    def test_says_where_it_looked_for_the_program(self):
        error = self.error(lambda: sailor.plan(JOB, CLUSTER, program="no-such-program"))
        self.assertEqual(str(error), "there is no program no-such-program (from the argument program)")
        self.assertIsNone(error.exit_code)
        with mock.patch.dict(os.environ, SAILOR_PROGRAM="no-such-program"):
            self.assertIn("SAILOR_PROGRAM", str(self.error(lambda: sailor.plan(JOB, CLUSTER))))
        with mock.patch.dict(os.environ, PATH="/nowhere"):
            del os.environ["SAILOR_PROGRAM"]
            self.assertIn("not on PATH", str(self.error(lambda: sailor.plan(JOB, CLUSTER))))

    def test_finds_the_program_by_argument_then_variable_then_path(self):
        with script("echo 'sailor: this one' >&2; exit 2\n") as other:
            self.assertEqual(str(self.error(lambda: sailor.plan(JOB, CLUSTER, program=other))), "this one")
            with mock.patch.dict(os.environ, SAILOR_PROGRAM=str(other), PATH="/usr/bin:/bin"):
                self.assertEqual(str(self.error(lambda: sailor.plan(JOB, CLUSTER))), "this one")
                self.assertEqual(sailor.plan(JOB, CLUSTER, program=PROGRAM).details, planned())
            with mock.patch.dict(os.environ, PATH=f"{other.parent}:/usr/bin:/bin"):
                del os.environ["SAILOR_PROGRAM"]
                self.assertEqual(str(self.error(lambda: sailor.plan(JOB, CLUSTER))), "this one")

    def test_survives_programs_that_are_not_sailor(self):
        def writes(result):
            return f"for a; do case $a in --result=*) echo '{result}' > \"${{a#*=}}\";; esac; done\n"

        for text, expected in (
            ("echo hello\n", "not the JSON"),
            (writes("[]"), "not the JSON"),
            (writes('{"sailor_plan_result": 2}'), "sailor_plan_result 2, this package reads 1"),
            ("exit 1\n", "ended with exit code 1"),
            ("kill -9 $$\n", "was ended by signal 9"),
        ):
            with self.subTest(text=text), script(text) as other:
                self.assertIn(expected, str(self.error(lambda: sailor.plan(JOB, CLUSTER, program=other))))
        with tempfile.TemporaryDirectory() as directory:
            broken = Path(directory, "broken")
            broken.write_text("\x7fELF")
            broken.chmod(stat.S_IRWXU)
            self.assertIn("cannot run", str(self.error(lambda: sailor.plan("job.yaml", CLUSTER, program=broken))))


def stage(first, end, tp, gpus, node="a"):
    return {"layers": [first, end], "gpu_type": "quick", "zone": "east", "tp": tp, "node": node, "gpus": gpus}


class Ranks(unittest.TestCase):
    uniform = {
        "pipelines": [
            {"microbatches": 3, "stages": [stage(0, 3, 2, [0, 1]), stage(3, 6, 2, [2, 3])]},
            {"microbatches": 2, "stages": [stage(0, 3, 2, [0, 1], "b"), stage(3, 6, 2, [2, 3], "b")]},
        ]
    }

    def test_are_numbered_by_pipelines_or_by_stages(self):
        ranks = sailor.ranks(self.uniform)
        self.assertEqual([(r.rank, r.pipeline, r.stage, r.tp_rank) for r in ranks],
                         [(0, 0, 0, 0), (1, 0, 0, 1), (2, 0, 1, 0), (3, 0, 1, 1), (4, 1, 0, 0), (5, 1, 0, 1), (6, 1, 1, 0), (7, 1, 1, 1)])
        self.assertEqual((ranks[6].node, ranks[6].gpu, ranks[6].layers, ranks[6].microbatches), ("b", 2, [range(3, 6)], 2))
        by_stages = sailor.ranks(self.uniform, "stages")
        self.assertEqual([(r.stage, r.pipeline, r.tp_rank) for r in by_stages],
                         [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1)])
        self.assertEqual([r.rank for r in by_stages], list(range(8)))
        with self.assertRaises(ValueError):
            sailor.ranks(self.uniform, "nodes")

    def test_have_groups_under_uniform_plans(self):
        alone = [[rank] for rank in range(8)]
        dp, pp = [[0, 4], [1, 5], [2, 6], [3, 7]], [[0, 2], [1, 3], [4, 6], [5, 7]]
        self.assertEqual(sailor.groups(self.uniform), ([[0, 1], [2, 3], [4, 5], [6, 7]], dp, pp, alone, dp))
        self.assertEqual(sailor.groups(self.uniform, "stages"), ([[0, 1], [2, 3], [4, 5], [6, 7]], pp, dp, alone, pp))

    def test_have_groups_with_context_parallelism_and_copies_of_states(self):
        split = [{"microbatches": 1, "stages": [{**stage(0, 6, 1, [0, 1], node), "cp": 2}]} for node in "abcd"]
        plan = {"pipelines": split, "zero": "optimizer", "zero_group": 2}
        ranks = sailor.ranks(plan)
        self.assertEqual([(r.pipeline, r.tp_rank, r.cp_rank, r.gpu) for r in ranks[:3]], [(0, 0, 0, 0), (0, 0, 1, 1), (1, 0, 0, 0)])
        groups = sailor.groups(plan)
        self.assertEqual((groups.cp, groups.dp), ([[0, 1], [2, 3], [4, 5], [6, 7]], [[0, 2, 4, 6], [1, 3, 5, 7]]))
        self.assertEqual(groups.shard, [[0, 1, 2, 3], [4, 5, 6, 7]])

    def test_with_interleaving_have_several_chunks(self):
        stages = [stage(0, 2, 1, [0]), stage(2, 3, 1, [1]), stage(3, 4, 1, [0]), stage(4, 6, 1, [1])]
        plan = {"interleave": 2, "pipelines": [{"microbatches": 4, "stages": stages}]}
        self.assertEqual([r.layers for r in sailor.ranks(plan)], [[range(0, 2), range(3, 4)], [range(2, 3), range(4, 6)]])
        self.assertEqual(sailor.groups(plan).pp, [[0, 1]])

    def test_have_no_groups_under_other_plans(self):
        for stages, what in (([stage(0, 2, 2, [0, 1]), stage(2, 6, 2, [2, 3])], "pipelines differ in their layers"),
                             ([stage(0, 3, 1, [0]), stage(3, 6, 2, [2, 3])], "TP degrees differ")):
            plan = {"pipelines": [self.uniform["pipelines"][0], {"microbatches": 2, "stages": stages}]}
            with self.assertRaisesRegex(ValueError, what):
                sailor.groups(plan)

    def test_are_those_of_the_programs_table(self):
        plan = sailor.plan(JOB, CLUSTER).plan
        used = [(rank.node, rank.gpu) for rank in sailor.ranks(plan)]
        self.assertEqual(len(used), len(set(used)))
        free = {(node["name"], gpu) for node in CLUSTER["nodes"] for gpu in node.get("free_gpus", range(node["gpus"]))}
        self.assertLessEqual(set(used), free)


class Guide(unittest.TestCase):
    def test_has_code_that_runs(self):
        root = Path(os.environ["SAILOR_SOURCE_DIR"])
        section = (root / "etc/doc/user-guide.md").read_text().split("## From Python")[1].split("\n## ")[0]
        code = [line[4:] for line in section.splitlines() if line.startswith("    ") and "pip install" not in line]
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(io.StringIO()) as printed:
            os.chdir(directory)
            self.addCleanup(os.chdir, before)
            Path("site.yaml").write_text("sailor_site: 1\n")
            Path("my-model").mkdir()
            Path("my-model/config.json").write_bytes((root / "etc/models/llama-3.2-1b.json").read_bytes())
            with mock.patch.dict(os.environ, SAILOR_CONFIG="site.yaml"):
                exec("\n".join(code), {})
            self.assertTrue(Path("plan.json").exists())
        self.assertIn("raise max_usd_per_iteration", printed.getvalue())


class Package(unittest.TestCase):
    def test_has_the_version_of_the_program(self):
        build = Path(os.environ["SAILOR_SOURCE_DIR"], "CMakeLists.txt").read_text()
        version = re.search(r"project\(sailor VERSION (\S+)", build).group(1)
        self.assertEqual((sailor.__version__, importlib.metadata.version("sailor")), (version, version))

    def test_has_an_option_for_every_flag_of_the_program(self):
        # Newer releases of CLI11 put long options into a column of their own.
        flags = set(re.findall(r"^ {2,10}(?:-\w,)? *--([a-z-]+)", program("plan", "--help")[1], re.MULTILINE))
        arguments = {"top", "cluster", "previous"}
        elsewhere = {"help", "quiet", "format", "output", "result", "model", "sequence", "global-batch", "precision"}
        ours = {name.replace("_", "-") for name in sailor.Options.__annotations__} - {"program"}
        self.assertEqual(flags - elsewhere - arguments, ours)


if __name__ == "__main__":
    unittest.main()
