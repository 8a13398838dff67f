"""Ranks of a plan, and the groups of ranks that torch.distributed needs."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional


class Rank(NamedTuple):
    """A process of the plan, on one GPU."""

    rank: int
    pipeline: int
    stage: int  # in its pipeline; with interleaving: the group of GPUs
    tp_rank: int
    gpu_type: str
    node: Optional[str]  # None if the plan is not placed
    gpu: Optional[int]  # index on the node
    layers: list[range]  # 0 is the embedding, the last one the head; a range for each chunk
    microbatches: int  # per iteration


class Groups(NamedTuple):
    """Every rank is in one group of each kind, in the order of its members."""

    tp: list[list[int]]  # tensor parallel: one stage of one pipeline
    dp: list[list[int]]  # data parallel: the same part of the model in all pipelines
    pp: list[list[int]]  # pipeline parallel: the stages of a pipeline


def ranks(plan: Mapping[str, Any], order: str = "pipelines") -> list[Rank]:
    """The ranks of a plan, by number.

    `order`, as in `sailor launch --rank-order`, is "pipelines" (pipeline, then stage, then TP rank), or "stages" (stage, then
    pipeline, then TP rank), as Megatron and a DeviceMesh of (pp, dp, tp) number them.
    """
    if order not in ("pipelines", "stages"):
        raise ValueError(f'order must be "pipelines" or "stages", is {order!r}')
    found = []
    for p, pipeline in enumerate(plan["pipelines"]):
        chunks = pipeline["stages"]
        count = max(1, len(chunks) // plan.get("interleave", 1))
        for s, stage in enumerate(chunks[:count]):
            layers = [range(*chunk["layers"]) for chunk in chunks[s::count]]
            for t in range(stage["tp"]):
                gpu = stage["gpus"][t] if "gpus" in stage else None
                found.append(Rank(0, p, s, t, stage["gpu_type"], stage.get("node"), gpu, layers, pipeline["microbatches"]))
    if order == "stages":
        found.sort(key=lambda rank: (rank.stage, rank.pipeline, rank.tp_rank))
    return [rank._replace(rank=i) for i, rank in enumerate(found)]


def groups(plan: Mapping[str, Any], order: str = "pipelines") -> Groups:
    """The groups of a uniform plan, for torch.distributed.new_group(); `order` as in ranks().

    Raises ValueError if pipelines differ in their layers or stages in their TP degree, so that no such groups exist.
    """
    cuts = {tuple(tuple(stage["layers"]) for stage in pipeline["stages"]) for pipeline in plan["pipelines"]}
    degrees = {stage["tp"] for pipeline in plan["pipelines"] for stage in pipeline["stages"]}
    if len(cuts) > 1 or len(degrees) > 1:
        what = "pipelines differ in their layers" if len(cuts) > 1 else f"TP degrees differ ({', '.join(map(str, sorted(degrees)))})"
        raise ValueError(f'the plan is not uniform: {what}; plan with trainer="megatron-core" for uniform plans')
    kinds: tuple[dict, dict, dict] = ({}, {}, {})
    for one in ranks(plan, order):
        places = (one.pipeline, one.stage), (one.stage, one.tp_rank), (one.pipeline, one.tp_rank)
        for kind, place in zip(kinds, places):
            kind.setdefault(place, []).append(one.rank)
    return Groups(*(list(kind.values()) for kind in kinds))
