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
    cp_rank: int = 0  # context parallel: its part of the tokens


class Groups(NamedTuple):
    """Every rank is in one group of each kind, in the order of its members."""

    tp: list[list[int]]  # tensor parallel: one stage of one pipeline
    dp: list[list[int]]  # data parallel: the same part of the model in all pipelines
    pp: list[list[int]]  # pipeline parallel: the stages of a pipeline
    cp: list[list[int]]  # context parallel: the tokens of a microbatch in one stage of one pipeline
    shard: list[list[int]]  # that share what ZeRO shards: of a part of the model, or in plans with `zero_group` of so many pipelines


def ranks(plan: Mapping[str, Any], order: str = "pipelines") -> list[Rank]:
    """The ranks of a plan, by number.

    `order`, as in `sailor launch --rank-order`, is "pipelines" (pipeline, then stage, CP rank and TP rank), or "stages" (stage, then
    pipeline, CP rank and TP rank), as Megatron and a DeviceMesh of (pp, dp, cp, tp) number them.
    """
    if order not in ("pipelines", "stages"):
        raise ValueError(f'order must be "pipelines" or "stages", is {order!r}')
    found = []
    for p, pipeline in enumerate(plan["pipelines"]):
        chunks = pipeline["stages"]
        count = max(1, len(chunks) // plan.get("interleave", 1))
        for s, stage in enumerate(chunks[:count]):
            layers = [range(*chunk["layers"]) for chunk in chunks[s::count]]
            for g in range(stage["tp"] * stage.get("cp", 1)):
                gpu = stage["gpus"][g] if "gpus" in stage else None
                c, t = divmod(g, stage["tp"])
                found.append(Rank(0, p, s, t, stage["gpu_type"], stage.get("node"), gpu, layers, pipeline["microbatches"], c))
    if order == "stages":
        found.sort(key=lambda rank: (rank.stage, rank.pipeline, rank.cp_rank, rank.tp_rank))
    return [rank._replace(rank=i) for i, rank in enumerate(found)]


def groups(plan: Mapping[str, Any], order: str = "pipelines") -> Groups:
    """The groups of a uniform plan, for torch.distributed.new_group(); `order` as in ranks().

    Raises ValueError if pipelines differ in their layers or stages in their TP or CP degree, so that no such groups exist.
    """
    cuts = {tuple(tuple(stage["layers"]) for stage in pipeline["stages"]) for pipeline in plan["pipelines"]}
    differ = "pipelines differ in their layers" if len(cuts) > 1 else ""
    for name in ("tp", "cp"):
        degrees = {stage.get(name, 1) for pipeline in plan["pipelines"] for stage in pipeline["stages"]}
        if len(degrees) > 1:
            differ = differ or f"{name.upper()} degrees differ ({', '.join(map(str, sorted(degrees)))})"
    if differ:
        raise ValueError(f'the plan is not uniform: {differ}; plan with trainer="megatron-core" for uniform plans')
    sharing = plan.get("zero_group") or len(plan["pipelines"])
    kinds: dict[str, dict] = {name: {} for name in Groups._fields}
    for one in ranks(plan, order):
        p, s, t, c = one.pipeline, one.stage, one.tp_rank, one.cp_rank
        places = {"tp": (p, s, c), "dp": (s, t, c), "pp": (p, t, c), "cp": (p, s, t), "shard": (s, t, p // sharing)}
        for name, place in places.items():
            kinds[name].setdefault(place, []).append(one.rank)
    return Groups(**{name: list(kind.values()) for name, kind in kinds.items()})
