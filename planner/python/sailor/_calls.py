"""The functions: each runs a verb of the program, which prints the table and the notes, and writes the result as JSON."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, TypedDict, Union

from . import _program, _results
from ._program import NO_PLAN, TIME_LIMIT, NoPlan, Output, SailorError, TimeLimit
from ._results import Explanation, ParetoFront, PlanResult, Simulation

if TYPE_CHECKING:
    from typing_extensions import Unpack

PathLike = Union[str, "os.PathLike[str]"]
Source = Union[PathLike, Mapping[str, Any]]  # a file, or what it would contain


class Options(TypedDict, total=False):
    """Options of plan(), explain() and pareto(). They override the job spec; None = not given."""

    objective: Optional[str]  # throughput, cost or energy
    max_cost: Optional[float]  # USD per iteration
    max_energy: Union[float, str, None]  # joules per iteration, or with a unit: "50kJ"
    min_throughput: Optional[float]  # iterations per second
    max_gpus: Union[Mapping[str, Union[int, Mapping[str, int]]], str, None]  # {TYPE: N}, {TYPE: {ZONE: N}}, {"total": N}
    zones: Union[Sequence[str], str, None]  # use only these
    trainer: Optional[str]  # what will run the plan: sailor, torchrun, accelerate, fsdp, hsdp, deepspeed, deepspeed-zero3, megatron-core or torchtitan
    search_space: Optional[str]  # full or paper
    cost_model: Optional[str]  # native or published
    allow: Union[Sequence[str], str, None]  # names of features of plans, as of --allow; or all; or none
    time_limit: Optional[float]  # seconds, of a search
    effort: Optional[float]  # factor on the search effort
    config: Optional[PathLike]  # site config
    program: Optional[PathLike]  # the program `sailor`


def plan(
    job: Source, cluster: Optional[Source] = None, *, top: int = 5, previous: Optional[Source] = None, **options: Unpack[Options]
) -> PlanResult:
    """Finds the best plan for a job, and up to `top` candidates of different kinds.

    `previous` is the plan that ran until now, when nodes were lost or added. `options`: see Options.
    Raises NoPlan if no plan is feasible, TimeLimit if none was found in time, SailorError if the input is wrong.
    """
    with _Call("plan", options) as call:
        call.add_job(job).add_live_cluster(cluster).add("top", top)
        if previous is not None:
            call.add("previous", call.file("previous", previous))
        data, text = call.run("sailor_plan_result")
    return PlanResult(text.text, text.notes, data, [_results.candidate(one) for one in data["candidates"]])


def simulate(
    plan: Source, job: Source, cluster: Optional[Source] = None, *, cost_model: Optional[str] = None,
    config: Optional[PathLike] = None, program: Optional[PathLike] = None,
) -> Simulation:  # fmt: skip
    """Predicts time, memory and cost of a plan.

    `cluster` gives prices, and the nodes that the plan must fit. A plan that cannot run is predicted too: see Simulation.problems.
    Raises SailorError if the input is wrong, or the plan is not one of this job.
    """
    with _Call("simulate", {"cost_model": cost_model, "config": config, "program": program}) as call:
        call.add_job(job).arguments.append(call.file("plan", plan))
        if cluster is not None:
            call.add("cluster", call.file("cluster", cluster))
        data, text = call.run("sailor_plan_result")
    return Simulation(text.text, text.notes, data, _results.candidate(data["candidates"][0]), text.errors)


def explain(
    job: Source, cluster: Optional[Source] = None, plan: Optional[Source] = None, **options: Unpack[Options]
) -> Explanation:
    """Explains the best plan, or a given one: its bottlenecks, and what would change it. Raises as plan().

    The searches after single changes take up to 1.5 times the time limit of a search.
    """
    with _Call("explain", options) as call:
        call.add_job(job).add_live_cluster(cluster)
        if plan is not None:
            call.add("plan", call.file("plan", plan))
        data, text = call.run("sailor_explanation")
    return Explanation(text.text, text.notes, data, _results.candidate(data["chosen"]), data["binding"], data["what_if"])


def pareto(job: Source, cluster: Optional[Source] = None, *, points: int = 10, **options: Unpack[Options]) -> ParetoFront:
    """Finds up to `points` plans from the cheapest to the fastest. Raises as plan().

    `time_limit` applies to each search; all of them take up to `points` times as long.
    """
    with _Call("pareto", options) as call:
        call.add_job(job).add_live_cluster(cluster).add("points", points)
        data, text = call.run("sailor_pareto")
    return ParetoFront(text.text, text.notes, data, [_results.candidate(point) for point in data["points"]])


class _Call:
    """A verb with its arguments, and a temporary directory for the files of its dicts while it runs."""

    def __init__(self, verb: str, options: Mapping[str, Any]):
        for name in options:
            if name not in Options.__annotations__:
                raise TypeError(f"sailor.{verb}() has no option {name!r}; options: {', '.join(Options.__annotations__)}")
        self.verb = verb
        self.program = _program.find(options.get("program"))
        self.notes: list[str] = []  # of the live cluster
        self.arguments: list[str] = [] if verb == "simulate" else ["--quiet"]
        for name, value in options.items():
            if name != "program":
                self.add(name, value)

    def __enter__(self) -> _Call:
        self.directory = tempfile.TemporaryDirectory(prefix="sailor-")
        return self

    def __exit__(self, *error: object) -> None:
        self.directory.cleanup()

    def add(self, name: str, value: Any) -> _Call:
        if value is not None:
            self.arguments.append(f"--{name.replace('_', '-')}={_option_text(value)}")
        return self

    def add_job(self, job: Source) -> _Call:
        self.arguments.append(self.file("job", _with_absolute_paths(job) if isinstance(job, Mapping) else job))
        return self

    def add_live_cluster(self, cluster: Optional[Source]) -> _Call:
        """`cluster`, or a snapshot of the live cluster."""
        if cluster is not None:
            return self.add("cluster", self.file("cluster", cluster))
        config = [argument for argument in self.arguments if argument.startswith("--config=")]
        snapshot = Path(self.directory.name, "cluster.json")
        live = _program.run([self.program, "cluster", "--format=yaml", *config])
        snapshot.write_text(live.text, encoding="utf-8")
        self.notes = live.notes
        return self.add("cluster", snapshot)

    def file(self, name: str, source: Source) -> str:
        """The path of a file with `source`."""
        if not isinstance(source, Mapping):
            return os.fspath(source)
        path = Path(self.directory.name, f"{name}.json")
        try:
            path.write_text(json.dumps(source, default=_plain, ensure_ascii=False, allow_nan=False), encoding="utf-8")
        except (TypeError, ValueError) as error:
            raise SailorError(f"{name}: {error}") from error
        return str(path)

    def scrub(self, text: str) -> str:
        """Names dicts as the arguments that they are: `job: training: ...` instead of `/tmp/.../job.json:1: training: ...`."""
        return re.sub(re.escape(self.directory.name) + r"/(\w+)\.json(:\d+\b)?", r"\1", text)

    def run(self, version_key: str) -> tuple[dict[str, Any], Output]:
        """The JSON result, and the output with the table."""
        file = Path(self.directory.name, "result.json")
        output = _program.run([self.program, self.verb, *self.arguments, "--format=table", f"--result={file}"], self.scrub)
        data = _program.read_result(file, version_key, self.scrub)
        if output.exit_code in (NO_PLAN, TIME_LIMIT) and self.verb != "simulate":
            kind = NoPlan if output.exit_code == NO_PLAN else TimeLimit
            message = output.errors[-1] if output.errors else data["reason"]
            raise kind(message, output.exit_code, data["reason"], data.get("rejected", {}))
        return data, output._replace(notes=self.notes + output.notes)


def _option_text(value: Any) -> str:
    if isinstance(value, Mapping):
        zones = [(f"{key}@{zone}", n) for key, of in value.items() if isinstance(of, Mapping) for zone, n in of.items()]
        types = [(key, n) for key, n in value.items() if not isinstance(n, Mapping)]
        return ",".join(f"{key}={n}" for key, n in types + zones)
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    return ",".join(map(str, value)) if isinstance(value, Sequence) else str(value)


def _plain(value: Any) -> Any:
    """What JSON has no form for, in one that it has: paths, and numbers of NumPy and PyTorch."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"a value of type {type(value).__name__} has no form in JSON")


def _with_absolute_paths(job: Mapping[str, Any]) -> dict[str, Any]:
    """The job with absolute paths for the files that planning reads."""
    job = dict(job)
    for section, key in (("model", "from"), ("trainer", "framework")):
        inner = job.get(section)
        if isinstance(inner, Mapping) and isinstance(inner.get(key), (str, os.PathLike)):
            job[section] = {**inner, key: os.path.abspath(inner[key])}
    return job
