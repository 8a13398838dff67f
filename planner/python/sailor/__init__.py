"""Plans distributed training on clusters of mixed GPU types: the planner of Sailor for Slurm, for Python programs.

    import sailor

    job = {"model": {"from": "my-model", "sequence": 4096}, "training": {"global_batch": 256, "precision": "bf16", "steps": 10000}}
    cluster = {"sailor_snapshot": 1, "nodes": [{"name": "a", "count": 2, "zone": "here", "gpu_type": "A100-80", "gpus": 8}]}
    result = sailor.plan(job, cluster)
    print(result.table)
    print(result.prediction.iteration_s, result.prediction.usd_per_iteration)
    result.save("plan.json")

The functions run the program `sailor` and read its JSON output: the one that the argument `program` names, else the one that the
environment variable SAILOR_PROGRAM names, else the one on PATH. They have no state, and threads may call them at the same time.

A job (job spec), a cluster (snapshot) or a plan is a dict, or the path of a file: YAML or JSON for a job and a cluster, JSON for a
plan. The formats are in etc/doc/formats.md. Relative paths in the dict of a job are relative to the working directory; those in a file
are relative to the file. Without a cluster, plan(), explain() and pareto() ask Slurm for the nodes that are free now.

When the program is missing or fails, or its input is wrong, a SailorError is raised. Times are in seconds, memory is in bytes, costs are in USD.
"""

from ._calls import Options, Source, explain, pareto, plan, simulate
from ._program import NoPlan, SailorError, TimeLimit
from ._ranks import Groups, Rank, groups, ranks
from ._results import Candidate, Explanation, ParetoFront, PlanResult, Prediction, Simulation

__version__ = "0.1.0"
__all__ = [
    "Candidate", "Explanation", "Groups", "NoPlan", "Options", "ParetoFront", "PlanResult", "Prediction", "Rank", "SailorError",
    "Simulation", "Source", "TimeLimit", "explain", "groups", "pareto", "plan", "ranks", "simulate",
]  # fmt: skip
