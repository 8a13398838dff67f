"""What the functions return. `details` is always the object that the program printed, whose keys etc/doc/plan-result.md lists."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any, Iterator, Optional, Union


@dataclass(frozen=True)
class Prediction:
    """What an iteration (optimizer step) under a plan is predicted to take."""

    iteration_s: float  # seconds
    iterations_per_s: float
    tokens_per_s: float
    usd_per_iteration: float  # GPUs and traffic between zones
    joules_per_iteration: Optional[float]  # None if unknown for a GPU type
    peak_memory_bytes: int  # of the fullest GPU
    fits: bool  # all GPUs have enough memory
    uncertainty: float  # of the layer times, relative: 0.25 is +-25 %; 0 = all were measured
    details: dict[str, Any] = field(repr=False)  # sync_s, update_s, stages (times and memory by source), ...


@dataclass(frozen=True)
class Candidate:
    """A plan and its prediction."""

    plan: dict[str, Any] = field(repr=False)  # as in a plan file
    prediction: Prediction
    details: dict[str, Any] = field(repr=False)  # shares, bill, usd_per_run, gap (of a Pareto front), ...

    @property
    def gpus(self) -> dict[str, int]:
        """Number of GPUs by type."""
        counts: dict[str, int] = {}
        for pipeline in self.plan["pipelines"]:
            for stage in pipeline["stages"][: len(pipeline["stages"]) // self.plan.get("interleave", 1)]:
                counts[stage["gpu_type"]] = counts.get(stage["gpu_type"], 0) + stage["tp"]
        return counts

    @property
    def bottleneck(self) -> Optional[str]:
        """What most of an iteration goes to: compute, bubble, p2p or sync; None on a Pareto front."""
        return self.details.get("bottleneck")


def candidate(details: dict[str, Any]) -> Candidate:
    """From an object with `plan`, `prediction` and `tokens_per_s`."""
    values = {"joules_per_iteration": None, **details["prediction"], "tokens_per_s": details["tokens_per_s"]}
    names = (name for name in Prediction.__dataclass_fields__ if name != "details")
    prediction = Prediction(**{name: values[name] for name in names}, details=details["prediction"])
    return Candidate(details["plan"], prediction, details)


@dataclass(frozen=True)
class Result:
    """Common to all results. str() is the table."""

    table: str = field(repr=False)  # as the program prints it
    notes: list[str]  # what the result rests on: estimates, assumed links, ...
    details: dict[str, Any] = field(repr=False)

    def __str__(self) -> str:
        return self.table

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # IPython and notebooks
        printer.text(self.table)


@dataclass(frozen=True)
class PlanResult(Result):
    """Of plan(): the best plan, and candidates of other kinds.

    Unpacks as the best plan: `plan, prediction, table = sailor.plan(job, cluster)`.
    """

    candidates: list[Candidate]  # best first, never empty

    def __iter__(self) -> Iterator[Any]:
        return iter((self.plan, self.prediction, self.table))

    @property
    def plan(self) -> dict[str, Any]:
        """The best plan, as in a plan file."""
        return self.candidates[0].plan

    @property
    def prediction(self) -> Prediction:
        """Of the best plan."""
        return self.candidates[0].prediction

    @property
    def bound_iteration_s(self) -> Optional[float]:
        """No plan of the search space that meets the limits is faster (seconds); None if unknown."""
        return self.details["bound_iteration_s"]

    @property
    def complete(self) -> bool:
        """The search finished within its time limit."""
        return self.details["complete"]

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the best plan to a file for `sailor run --plan`, `sbatch --sailor-plan` and others."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.plan, file, indent=2)
            file.write("\n")


@dataclass(frozen=True)
class Simulation(Result):
    """Of simulate(): the prediction of a given plan."""

    candidate: Candidate
    problems: list[str]  # why the plan cannot run: memory, GPUs that are not free or used twice; empty if it can

    @property
    def prediction(self) -> Prediction:
        return self.candidate.prediction


@dataclass(frozen=True)
class Explanation(Result):
    """Of explain(): why a plan was chosen."""

    chosen: Candidate
    binding: list[dict[str, Any]]  # bottlenecks, largest gain first: `what`, `gain`
    what_if: list[dict[str, Any]]  # single changes: `kind`, `change`, `gain`, `plan`, `prediction`, ...


@dataclass(frozen=True)
class ParetoFront(Result):
    """Of pareto(): plans of which none is both slower and more expensive than another."""

    points: list[Candidate]  # from the cheapest to the fastest, never empty
