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
    return {"tp": first["stages"][0]["tp"], "pp": stages, "dp": len(plan["pipelines"]), "microbatch": plan["microbatch"],
            "microbatches": first["microbatches"], "global_batch": plan["global_batch"], **more}


def torchtitan(plan):
    from torchtitan.config import ConfigManager
    from torch.distributed.pipelining.schedules import Schedule1F1B, ScheduleInterleaved1F1B, get_schedule_class

    config = ConfigManager().parse_args([f"--job.config_file={DIRECTORY / 'torchtitan.toml'}"])
    of, training = config.parallelism, config.training
    microbatch = of.pipeline_parallel_microbatch_size if of.pipeline_parallel_degree > 1 else training.local_batch_size
    data = of.data_parallel_shard_degree * of.data_parallel_replicate_degree
    found = {"tp": of.tensor_parallel_degree, "pp": of.pipeline_parallel_degree, "dp": data, "microbatch": microbatch,
             "microbatches": training.global_batch_size // data // microbatch, "global_batch": training.global_batch_size,
             "recompute": config.activation_checkpoint.mode, "precision": training.mixed_precision_param, "lr": config.optimizer.lr}
    wanted = described(plan, recompute=plan["pipelines"][0]["stages"][0]["recompute"], precision="bfloat16", lr=3e-4)
    if of.pipeline_parallel_degree > 1:
        assert training.local_batch_size == microbatch * wanted["microbatches"]
        loop = ScheduleInterleaved1F1B if plan.get("interleave", 1) > 1 else Schedule1F1B
        assert get_schedule_class(of.pipeline_parallel_schedule) is loop
        last = max(end for _, end in layers_of(plan)) - 1
        names = lambda layer: ["tok_embeddings"] if layer == 0 else ["norm", "output"] if layer == last else [f"layers.{layer - 1}"]
        found["layers"] = of.module_fqns_per_model_part
        wanted["layers"] = [sum((names(layer) for layer in range(*of_stage)), []) for of_stage in layers_of(plan)]
    return found, wanted


def deepspeed(plan, file="deepspeed.json", stage=1):
    from deepspeed import comm
    from deepspeed.runtime.config import DeepSpeedConfig

    comm.get_rank = lambda: 0  # one of the plan's ranks, without the others
    config = DeepSpeedConfig(str(DIRECTORY / file), mpu=DataParallel(len(plan["pipelines"])))
    found = {"tp": 1, "pp": 1, "dp": len(plan["pipelines"]), "microbatch": config.train_micro_batch_size_per_gpu,
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


def fsdp(plan):
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser

    file = str(DIRECTORY / "fsdp.yaml")
    config = load_config_from_file(file)
    recomputes = plan["pipelines"][0]["stages"][0]["recompute"] == "full"
    found = {"kind": config.distributed_type.value, "processes": config.num_processes, "precision": config.mixed_precision,
             "recompute": config.fsdp_config["fsdp_activation_checkpointing"]}
    wanted = {"kind": "FSDP", "processes": len(plan["pipelines"]), "precision": "bf16", "recompute": recomputes}
    arguments, _, _ = _validate_launch_command(launch_command_parser().parse_args(["--config_file", file, "train.py"]))
    assert (arguments.use_fsdp, str(arguments.fsdp_version), str(arguments.fsdp_reshard_after_forward).lower()) == (True, "2", "true"), arguments
    assert str(arguments.fsdp_activation_checkpointing).lower() == str(recomputes).lower(), arguments
    return found, wanted


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
    data_parallel = devices // strategy.tensor_model_parallel_size // strategy.pipeline_model_parallel_size
    found = {"tp": strategy.tensor_model_parallel_size, "pp": strategy.pipeline_model_parallel_size, "dp": data_parallel,
             "microbatch": data.micro_batch_size, "microbatches": data.global_batch_size // data_parallel // data.micro_batch_size,
             "global_batch": data.global_batch_size, "layout": strategy.get("pipeline_model_parallel_layout"),
             "zero": strategy.ddp.use_distributed_optimizer, "precision": config.trainer.plugins.precision, "lr": optimizer.lr, "eps": optimizer.adam_eps}
    last = max(end for _, end in layers_of(plan)) - 1
    letter = lambda layer: "E" if layer == 0 else "L" if layer == last else "t"
    layout = "|".join("".join(letter(layer) for layer in range(*of_stage)) for of_stage in layers_of(plan))
    even = len({part.count("t") for part in layout.split("|")}) == 1
    return found, described(plan, layout=None if even else layout, zero=plan["zero1"], precision="bf16-mixed", lr=3e-4, eps=1e-8)


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
        place = {"dp": mesh.get_local_rank("dp"), "pp": mesh.get_local_rank("pp"), "tp": mesh.get_local_rank("tp")}
        stage = plan["pipelines"][place["dp"]]["stages"][place["pp"]]
        found.append({"pipeline": place["dp"], "stage": place["pp"], "tp_rank": place["tp"], "node": stage["node"], "gpu": stage["gpus"][place["tp"]]})
        torch.distributed.destroy_process_group()
    return {"ranks": found}, {"ranks": config["ranks"]}


def source_of(package, file, names):
    """Functions and classes of a file, without what it imports."""
    tree = ast.parse(Path(importlib.metadata.distribution(package).locate_file(file)).read_text())
    tree.body = [node for node in tree.body if getattr(node, "name", None) in names]
    found = {"Optional": Optional, "List": List}
    exec(compile(tree, file, "exec"), found)
    return [found[name] for name in names]


def megatron_groups(tp, dp, pp):
    """As Megatron-Core makes them, in its default order."""
    _, generator = source_of("megatron-core", "megatron/core/parallel_state.py", ["generate_masked_orthogonal_rank_groups", "RankGenerator"])
    of = generator(tp=tp, ep=1, dp=dp, pp=pp, cp=1, order="tp-cp-ep-dp-pp")
    return {kind: sorted(of.get_ranks(kind)) for kind in ("tp", "dp", "pp")}


def torchtitan_groups(tp, dp, pp):
    """As TorchTitan's device mesh has them."""
    import torch
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from torchtitan.distributed import ParallelDims, parallel_dims

    parallel_dims.device_type = "cpu"
    world = tp * dp * pp
    groups = {"tp": set(), "dp": set(), "pp": set()}
    for rank in range(world):
        torch.distributed.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
        dims = ParallelDims(dp_replicate=1, dp_shard=dp, cp=1, tp=tp, pp=pp, ep=1, etp=1, world_size=world)
        dims.build_mesh()
        for kind, name, degree in (("tp", "tp", tp), ("dp", "fsdp", dp), ("pp", "pp", pp)):
            mesh = dims.get_optional_mesh(name) if degree > 1 else None
            groups[kind].add(tuple(mesh.mesh.flatten().tolist()) if mesh else (rank,))
        torch.distributed.destroy_process_group()
    return {kind: sorted(map(list, of)) for kind, of in groups.items()}


def orders(kind, groups_of):
    """Groups of ranks, as the planner numbers them for a framework and as the framework forms them, under all plans that were drawn."""
    found, wanted = [], []
    for file in sorted(DIRECTORY.glob(f"ranks-*.{kind}.json")):
        config = json.loads(file.read_text())
        of = dict(zip(config["mesh_dim_names"], config["mesh_shape"]))
        groups = {"tp": {}, "dp": {}, "pp": {}}
        for rank, place in enumerate(config["ranks"]):
            groups["tp"].setdefault((place["pipeline"], place["stage"]), []).append(rank)
            groups["dp"].setdefault((place["stage"], place["tp_rank"]), []).append(rank)
            groups["pp"].setdefault((place["pipeline"], place["tp_rank"]), []).append(rank)
        found.append((of, {name: sorted(ranks.values()) for name, ranks in groups.items()}))
        wanted.append((of, groups_of(of["tp"], of["dp"], of["pp"])))
    assert len(found) > 3 and any(min(of.values()) > 1 for of, _ in found), [of for of, _ in found]
    return {"groups": found}, {"groups": wanted}


CHECKS = {"megatron ranks": ("megatron-core", lambda plan: orders("megatron-core", megatron_groups)),
          "torchtitan ranks": ("torchtitan", lambda plan: orders("torchtitan", torchtitan_groups)),
          "torchtitan": ("torchtitan", torchtitan), "deepspeed": ("deepspeed", deepspeed),
          "zero3": ("deepspeed", lambda plan: deepspeed(plan, "zero3.json", 3)), "accelerate": ("accelerate", accelerate),
          "fsdp": ("accelerate", fsdp), "nemo": ("nemo_toolkit", nemo), "mesh": ("torch", mesh)}


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
