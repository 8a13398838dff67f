"""Loads the configurations of `sailor plan --format` with the frameworks' own loaders, and compares what they understood with the plan.

usage: check.py DIRECTORY, which has FORMAT.SUFFIX and FORMAT.plan.json per format. Prints a line per format; a framework that is not installed is
skipped. Exit 1 if one differs, 77 if none is installed.
"""
import ast
import importlib.metadata
import json
import sys
from pathlib import Path
from typing import List, Optional

DIRECTORY = Path(sys.argv[1])


def layers_of(plan):
    return [tuple(stage["layers"]) for stage in plan["pipelines"][0]["stages"]]


def described(plan, **more):
    """What a format says about a plan that is uniform."""
    first = plan["pipelines"][0]
    stages = len(first["stages"]) // plan.get("interleave", 1)
    return {"tp": first["stages"][0]["tp"], "cp": first["stages"][0].get("cp", 1), "pp": stages, "dp": len(plan["pipelines"]), "microbatch": plan["microbatch"],
            "microbatches": first["microbatches"], "global_batch": plan["global_batch"], **more}


def torchtitan(plan):
    from torchtitan.config import ConfigManager
    from torch.distributed.pipelining.schedules import Schedule1F1B, ScheduleInterleaved1F1B, get_schedule_class

    config = ConfigManager().parse_args([f"--job.config_file={DIRECTORY / 'torchtitan.toml'}"])
    of, training = config.parallelism, config.training
    microbatch = of.pipeline_parallel_microbatch_size if of.pipeline_parallel_degree > 1 else training.local_batch_size
    data = of.data_parallel_shard_degree * of.data_parallel_replicate_degree
    found = {"tp": of.tensor_parallel_degree, "cp": of.context_parallel_degree, "pp": of.pipeline_parallel_degree, "dp": data, "microbatch": microbatch,
             "microbatches": training.global_batch_size // data // microbatch, "global_batch": training.global_batch_size,
             "recomputed": recomputed_by_torchtitan(config.activation_checkpoint, plan), "precision": training.mixed_precision_param,
             "lr": config.optimizer.lr}
    wanted = described(plan, recomputed=recomputed(plan), precision="bfloat16", lr=3e-4)
    if of.pipeline_parallel_degree > 1:
        assert training.local_batch_size == microbatch * wanted["microbatches"]
        loop = ScheduleInterleaved1F1B if plan.get("interleave", 1) > 1 else Schedule1F1B
        assert get_schedule_class(of.pipeline_parallel_schedule) is loop
        last = max(end for _, end in layers_of(plan)) - 1
        names = lambda layer: ["tok_embeddings"] if layer == 0 else ["norm", "output"] if layer == last else [f"layers.{layer - 1}"]
        found["layers"] = of.module_fqns_per_model_part
        wanted["layers"] = [sum((names(layer) for layer in range(*of_stage)), []) for of_stage in layers_of(plan)]
    return found, wanted


def blocks_of(plan):
    """Transformer blocks of each stage of a pipeline: without embedding and head."""
    last = max(end for _, end in layers_of(plan)) - 1
    return [sum(0 < layer < last for layer in range(*of_stage)) for of_stage in layers_of(plan)]


def recomputed(plan):
    """How many of them each stage recomputes whole."""
    levels = [stage["recompute"] for stage in plan["pipelines"][0]["stages"]]
    return [level["full"] if isinstance(level, dict) else blocks if level == "full" else 0 for level, blocks in zip(levels, blocks_of(plan))]


def recomputed_by_torchtitan(config, plan):
    """The same, as its own function chooses them, chunk by chunk of each rank."""
    if config.mode in ("none", "full"):
        return [blocks if config.mode == "full" else 0 for blocks in blocks_of(plan)]
    import torch
    from torchtitan.distributed import activation_checkpoint

    counts, groups = [0] * len(blocks_of(plan)), len(blocks_of(plan)) // plan.get("interleave", 1)
    for group in range(groups):
        activation_checkpoint._layer_sac_count = 0
        for stage in range(group, len(counts), groups):
            wrapped = [activation_checkpoint._apply_layer_sac(torch.nn.Linear(1, 1), config) for _ in range(blocks_of(plan)[stage])]
            counts[stage] = sum(not isinstance(block, torch.nn.Linear) for block in wrapped)
    return counts


def deepspeed(plan, file="deepspeed.json", stage=1):
    from deepspeed import comm
    from deepspeed.runtime.config import DeepSpeedConfig

    comm.get_rank = lambda: 0  # one of the plan's ranks, without the others
    config = DeepSpeedConfig(str(DIRECTORY / file), mpu=DataParallel(len(plan["pipelines"])))
    found = {"tp": 1, "cp": 1, "pp": 1, "dp": len(plan["pipelines"]), "microbatch": config.train_micro_batch_size_per_gpu,
             "microbatches": config.gradient_accumulation_steps, "global_batch": config.train_batch_size,
             "zero": int(config.zero_config.stage), "clip": config.gradient_clipping, "bf16": config.bfloat16_config.enabled,
             "optimizer": config.optimizer_name, "lr": config.optimizer_params["lr"]}
    return found, described(plan, zero=stage, clip=1.0, bf16=True, optimizer="adamw", lr=3e-4)


class DataParallel:
    """The groups of a plan, for DeepSpeed."""

    def __init__(self, size):
        self.size = size

    def get_data_parallel_world_size(self):
        return self.size


def accelerate(plan):
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser

    file = str(DIRECTORY / "accelerate.yaml")
    config = load_config_from_file(file)
    nodes = {stage["node"] for pipeline in plan["pipelines"] for stage in pipeline["stages"]}
    found = {"kind": config.distributed_type.value, "processes": config.num_processes, "machines": config.num_machines, "precision": config.mixed_precision}
    wanted = {"kind": "MULTI_GPU", "processes": len(plan["pipelines"]), "machines": len(nodes), "precision": "bf16"}
    arguments, _, _ = _validate_launch_command(launch_command_parser().parse_args(["--config_file", file, "train.py"]))
    assert (arguments.num_processes, arguments.num_machines, arguments.multi_gpu) == (config.num_processes, config.num_machines, True), arguments
    return found, wanted


def fsdp(plan, name="fsdp.yaml"):
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser

    file = str(DIRECTORY / name)
    config = load_config_from_file(file)
    recomputes = plan["pipelines"][0]["stages"][0]["recompute"] == "full"
    found = {"kind": config.distributed_type.value, "processes": config.num_processes, "precision": config.mixed_precision,
             "recompute": config.fsdp_config["fsdp_activation_checkpointing"]}
    wanted = {"kind": "FSDP", "processes": len(plan["pipelines"]), "precision": "bf16", "recompute": recomputes}
    arguments, _, _ = _validate_launch_command(launch_command_parser().parse_args(["--config_file", file, "train.py"]))
    assert (arguments.use_fsdp, str(arguments.fsdp_version), str(arguments.fsdp_reshard_after_forward).lower()) == (True, "2", "true"), arguments
    assert str(arguments.fsdp_activation_checkpointing).lower() == str(recomputes).lower(), arguments
    if group := plan.get("zero_group"):
        from accelerate.utils.launch import prepare_extend_env_parallelism_config

        of_ranks = prepare_extend_env_parallelism_config(arguments, {})
        found["groups"] = [int(of_ranks[f"PARALLELISM_CONFIG_DP_{name}_SIZE"]) for name in ("REPLICATE", "SHARD")]
        wanted["groups"] = [len(plan["pipelines"]) // group, group]
    return found, wanted


def hsdp(plan):
    assert plan["zero_group"] > 0, plan
    return fsdp(plan, "hsdp.yaml")


def parameters(package, file, name):
    """Names of the parameters of a class, or of the fields of a data class, from its source: importing it takes CUDA kernels."""
    source = importlib.metadata.distribution(package).locate_file(file)
    of_class = next(node for node in ast.parse(Path(source).read_text()).body if isinstance(node, ast.ClassDef) and node.name == name)
    for node in of_class.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            return {argument.arg for argument in node.args.args + node.args.kwonlyargs}
    return {node.target.id for node in of_class.body if isinstance(node, ast.AnnAssign)}


def nemo(plan):
    from omegaconf import OmegaConf  # what NeMo-Run loads files with

    config = OmegaConf.load(DIRECTORY / "nemo.yaml")
    strategy, data, optimizer = config.trainer.strategy, config.data, config.optim.config
    transformer = parameters("megatron-core", "megatron/core/transformer/transformer_config.py", "TransformerConfig")
    for keys, known in ((strategy, parameters("nemo_toolkit", "nemo/lightning/pytorch/strategies/megatron_strategy.py", "MegatronStrategy")),
                        (config.trainer.plugins, parameters("nemo_toolkit", "nemo/lightning/pytorch/plugins/mixed_precision.py", "MegatronMixedPrecision")),
                        (data, parameters("nemo_toolkit", "nemo/collections/llm/gpt/data/mock.py", "MockDataModule")),
                        (strategy.ddp, parameters("megatron-core", "megatron/core/distributed/distributed_data_parallel_config.py", "DistributedDataParallelConfig")),
                        (optimizer, parameters("megatron-core", "megatron/core/optimizer/optimizer_config.py", "OptimizerConfig")),
                        (config.model.config, transformer)):
        assert set(keys) <= known, set(keys) - known
    devices = config.trainer.num_nodes * config.trainer.devices
    data_parallel = devices // strategy.tensor_model_parallel_size // strategy.context_parallel_size // strategy.pipeline_model_parallel_size
    found = {"tp": strategy.tensor_model_parallel_size, "cp": strategy.context_parallel_size, "pp": strategy.pipeline_model_parallel_size, "dp": data_parallel,
             "microbatch": data.micro_batch_size, "microbatches": data.global_batch_size // data_parallel // data.micro_batch_size,
             "global_batch": data.global_batch_size, "layout": strategy.get("pipeline_model_parallel_layout"),
             "zero": strategy.ddp.use_distributed_optimizer, "precision": config.trainer.plugins.precision, "lr": optimizer.lr, "eps": optimizer.adam_eps,
             "recomputed": recomputed_by_megatron(config.model.config, plan)}
    assert strategy.context_parallel_size == 1 or config.model.config.cp_comm_type == "a2a"
    last = max(end for _, end in layers_of(plan)) - 1
    letter = lambda layer: "E" if layer == 0 else "L" if layer == last else "t"
    layout = "|".join("".join(letter(layer) for layer in range(*of_stage)) for of_stage in layers_of(plan))
    even = len({part.count("t") for part in layout.split("|")}) == 1
    return found, described(plan, layout=None if even else layout, zero=plan["zero1"], precision="bf16-mixed", lr=3e-4, eps=1e-8,
                            recomputed=recomputed(plan))


def recomputed_by_megatron(config, plan):
    """As its transformer block goes through the layers of a stage."""
    if config.recompute_granularity != "full":
        return [0] * len(blocks_of(plan))
    if config.recompute_method == "uniform":
        return blocks_of(plan)
    return [min(config.recompute_num_layers, blocks) for blocks in blocks_of(plan)]


def mesh(plan):
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    config = json.loads((DIRECTORY / "mesh.json").read_text())
    ranks = len(config["ranks"])
    found = []
    for rank in range(ranks):
        torch.distributed.init_process_group("fake", rank=rank, world_size=ranks, store=FakeStore())
        mesh = init_device_mesh("cpu", tuple(config["mesh_shape"]), mesh_dim_names=tuple(config["mesh_dim_names"]))
        place = {name: mesh.get_local_rank(name) for name in mesh.mesh_dim_names}
        pipeline = place["dp"] if "dp" in place else place["dp_replicate"] * plan["zero_group"] + place["dp_shard"]
        stage = plan["pipelines"][pipeline]["stages"][place["pp"]]
        of_replica = place.get("cp", 0) * stage["tp"] + place["tp"]
        found.append({"pipeline": pipeline, "stage": place["pp"], "tp_rank": place["tp"], "node": stage["node"], "gpu": stage["gpus"][of_replica]})
        if "cp" in place:
            found[-1]["cp_rank"] = place["cp"]
        torch.distributed.destroy_process_group()
    return {"ranks": found}, {"ranks": config["ranks"]}


def source_of(package, file, names):
    """Functions and classes of a file, without what it imports."""
    tree = ast.parse(Path(importlib.metadata.distribution(package).locate_file(file)).read_text())
    tree.body = [node for node in tree.body if getattr(node, "name", None) in names]
    found = {"Optional": Optional, "List": List}
    exec(compile(tree, file, "exec"), found)
    return [found[name] for name in names]


def megatron_groups(tp, cp, dp, pp, shard):
    """As Megatron-Core makes them, in its default order."""
    _, generator = source_of("megatron-core", "megatron/core/parallel_state.py", ["generate_masked_orthogonal_rank_groups", "RankGenerator"])
    of = generator(tp=tp, ep=1, dp=dp, pp=pp, cp=cp, order="tp-cp-ep-dp-pp")
    groups = {kind: sorted(of.get_ranks(kind)) for kind in ("tp", "cp", "dp", "pp")}
    # The instances of the distributed optimizer: initialize_model_parallel() cuts the groups with context parallelism, dp-cp, into equal parts.
    groups["shard"] = sorted(ranks[i : i + shard * cp] for ranks in of.get_ranks("dp-cp") for i in range(0, len(ranks), shard * cp))
    return groups


def torchtitan_groups(tp, cp, dp, pp, shard):
    """As TorchTitan's device mesh has them."""
    import torch
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from torchtitan.distributed import ParallelDims, parallel_dims

    parallel_dims.device_type = "cpu"
    world = tp * dp * pp
    groups = {"tp": set(), "shard": set(), "pp": set()}
    for rank in range(world):
        torch.distributed.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
        dims = ParallelDims(dp_replicate=dp // shard, dp_shard=shard, cp=cp, tp=tp, pp=pp, ep=1, etp=1, world_size=world)
        dims.build_mesh()
        for kind, name, degree in (("tp", "tp", tp), ("shard", "fsdp", shard), ("pp", "pp", pp)):
            mesh = dims.get_optional_mesh(name) if degree > 1 else None
            groups[kind].add(tuple(mesh.mesh.flatten().tolist()) if mesh else (rank,))
        torch.distributed.destroy_process_group()
    return {kind: sorted(map(list, of)) for kind, of in groups.items()}


def orders(kind, groups_of):
    """Groups of ranks, as the planner numbers them for a framework and as the framework forms them, under all plans that were drawn."""
    found, wanted = [], []
    for file in sorted(DIRECTORY.glob(f"ranks-*.{kind}.json")):
        config = json.loads(file.read_text())
        of = {"cp": 1, "dp_replicate": 1, **dict(zip(config["mesh_dim_names"], config["mesh_shape"]))}
        shard = of["dp"] if "dp" in of else of["dp_shard"]
        groups = {"tp": {}, "cp": {}, "dp": {}, "pp": {}, "shard": {}}
        for rank, place in enumerate(config["ranks"]):
            pipeline, stage, tp, cp = place["pipeline"], place["stage"], place["tp_rank"], place.get("cp_rank", 0)
            groups["tp"].setdefault((pipeline, stage, cp), []).append(rank)
            groups["cp"].setdefault((pipeline, stage, tp), []).append(rank)
            groups["dp"].setdefault((stage, tp, cp), []).append(rank)
            groups["pp"].setdefault((pipeline, tp, cp), []).append(rank)
            groups["shard"].setdefault((stage, tp, pipeline // shard), []).append(rank)
        theirs = groups_of(of["tp"], of["cp"], shard * of["dp_replicate"], of["pp"], shard)
        found.append((of, {name: sorted(groups[name].values()) for name in theirs}))
        wanted.append((of, theirs))
    assert len(found) > 3 and any(min(of["tp"], of["pp"], of.get("dp", 2)) > 1 for of, _ in found), [of for of, _ in found]
    if kind == "megatron-core":
        assert any(of["cp"] > 1 for of, _ in found), [of for of, _ in found]
    return {"groups": found}, {"groups": wanted}


CHECKS = {"megatron ranks": ("megatron-core", lambda plan: orders("megatron-core", megatron_groups)),
          "torchtitan ranks": ("torchtitan", lambda plan: orders("torchtitan", torchtitan_groups)),
          "torchtitan": ("torchtitan", torchtitan), "deepspeed": ("deepspeed", deepspeed),
          "zero3": ("deepspeed", lambda plan: deepspeed(plan, "zero3.json", 3)), "accelerate": ("accelerate", accelerate),
          "fsdp": ("accelerate", fsdp), "hsdp": ("accelerate", hsdp), "nemo": ("nemo_toolkit", nemo), "mesh": ("torch", mesh)}


def main():
    checked = failed = 0
    for name, (package, check) in CHECKS.items():
        try:
            version = importlib.metadata.version(package)
            plan = DIRECTORY / f"{name}.plan.json"
            found, wanted = check(json.loads(plan.read_text()) if plan.exists() else None)
        except (ImportError, importlib.metadata.PackageNotFoundError) as error:
            print(f"skipped: {name}: {error}")
            continue
        checked += 1
        failed += found != wanted
        print(f"{name} ({package} {version}): " + ("as planned" if found == wanted else f"{found}, planned is {wanted}"))
    return 77 if checked == 0 else int(failed > 0)


sys.exit(main())
