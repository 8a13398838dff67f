// The environment of the ranks of a training program that is not Sailor's own: that of `torchrun`, so that
// `torch.distributed.init_process_group("env://")` and what is built on it work as they are.
//
//     RANK, WORLD_SIZE                  the rank, in the order that the framework expects; number of ranks
//     LOCAL_RANK, LOCAL_WORLD_SIZE      the same on the node
//     GROUP_RANK, GROUP_WORLD_SIZE      of the node, in the order of its lowest rank (also NODE_RANK)
//     ROLE_RANK, ROLE_WORLD_SIZE        as RANK and WORLD_SIZE
//     MASTER_ADDR, MASTER_PORT          where rank 0 listens
//     CUDA_VISIBLE_DEVICES              GPUs of the node's ranks: LOCAL_RANK is the index of a rank's own
//     CUDA_DEVICE_ORDER=PCI_BUS_ID      as plans number GPUs
//     TORCHELASTIC_RUN_ID               the job
//     OMP_NUM_THREADS                   processors of the node per rank, unless the user has set it
//     TORCHELASTIC_RESTART_COUNT        earlier starts in an elastic job
//     SAILOR_CHANGE                     of such a job: the file that says why ranks must end
//     SAILOR_STEPS                      directory of trainer/record/program_steps.h
//     SAILOR_PLAN                       the plan (JSON)
//     SAILOR_PIPELINE, SAILOR_STAGE, SAILOR_TP_RANK, SAILOR_CP_RANK   place of the rank in it
//     SAILOR_GPU_TYPE                   of its GPU
//     SAILOR_MICROBATCH, SAILOR_MICROBATCHES   sequences of a microbatch; microbatches per iteration
//     SAILOR_SHARD_RANKS                data-parallel ranks in a row that share what is sharded
//     SAILOR_GLOBAL_BATCH, SAILOR_PRECISION
//     SAILOR_RECOMPUTE                  none, or what its stage recomputes in the backward: full, selective
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "planner/spec/framework_style.h"

namespace sailor {

// By rank of the layout: its rank in the framework's order. By stages (Megatron's "tp-dp-pp"): the TP rank
// runs fastest, then the pipeline, then the stage.
std::vector<int> framework_ranks(const RankLayout& layout, FrameworkStyle::RankOrder order);

// Where rank 0 listens, and what else is the same for all ranks.
struct RendezvousPoint {
  std::string address;
  int port = 0;
  std::string run_id;
  std::string plan_file;
};

// Nodes of a placed plan in the order of their lowest framework rank.
std::vector<std::string> nodes_in_order(const RankLayout& layout, FrameworkStyle::RankOrder order);

// Of the ranks on `node`, by local rank. `visible`: CUDA_VISIBLE_DEVICES of the node's step, or nothing;
// `processors`: those of the step. Throws std::runtime_error if the step has fewer GPUs than the plan uses.
std::vector<std::map<std::string, std::string>> rank_environments(const Plan& plan,
                                                                  FrameworkStyle::RankOrder order,
                                                                  const std::string& node,
                                                                  const RendezvousPoint& meeting,
                                                                  const std::string& visible, int processors);

// A port for rank 0 that other jobs on its node are unlikely to use: below those that kernels give out.
int rendezvous_port(const std::string& job_id);

}  // namespace sailor
