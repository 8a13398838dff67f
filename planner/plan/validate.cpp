#include "planner/plan/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "planner/plan/place.h"

namespace sailor {
namespace {

std::string at(size_t pipeline, size_t stage) {
  return fmt::format("pipeline {}, stage {}: ", pipeline, stage);
}

void check_layers(const PlanPipeline& pipeline, size_t p, int num_layers,
                  std::vector<std::string>& violations) {
  if (pipeline.stages.empty()) {
    violations.push_back(fmt::format("pipeline {}: has no stages", p));
    return;
  }
  int next = 0;
  for (size_t s = 0; s < pipeline.stages.size(); ++s) {
    const PlanStage& stage = pipeline.stages[s];
    if (stage.first_layer != next) {
      violations.push_back(at(p, s) +
                           fmt::format("begins at layer {}, layer {} is next", stage.first_layer, next));
    }
    if (stage.end_layer <= stage.first_layer) {
      violations.push_back(
          at(p, s) + fmt::format("the layer range [{}, {}) is empty", stage.first_layer, stage.end_layer));
    }
    next = stage.end_layer;
  }
  if (next != num_layers) {
    violations.push_back(at(p, pipeline.stages.size() - 1) +
                         fmt::format("ends at layer {}, the model has {} layers", next, num_layers));
  }
}

void check_stage(const PlanStage& stage, const std::string& where, const ModelSpec& model,
                 const PlanFeatures& allowed, std::vector<std::string>& violations) {
  const int tp = stage.shape.tp;
  if (tp < 1) {
    violations.push_back(where + fmt::format("tp {} is not a valid TP degree", tp));
    return;
  }
  if (model.heads % tp != 0) {
    violations.push_back(where + fmt::format("tp {} does not divide the model's {} heads", tp, model.heads));
  }
  if (model.feed_forward % tp != 0) {
    violations.push_back(
        where + fmt::format("tp {} does not divide the model's feed_forward {}", tp, model.feed_forward));
  }
  for (const Recompute level : {stage.recompute.level(), stage.recompute.deep()}) {
    if (level == Recompute::none) continue;
    if (!allowed.contains(level == Recompute::selective ? PlanFeature::selective_recompute
                                                        : PlanFeature::recompute))
      violations.push_back(where + fmt::format("recompute \"{}\" is not supported by this version's trainer",
                                               to_string(level)));
  }
  if (stage.recompute.offloads() && !allowed.contains(PlanFeature::offload))
    violations.push_back(where + fmt::format("recompute \"{}\" is not supported by this version's trainer",
                                             to_string(Recompute::offload)));
  if (offloads_optimizer(stage) && !allowed.contains(PlanFeature::offload))
    violations.push_back(where + fmt::format("offload \"{}\" is not supported by this version's trainer",
                                             to_string(stage.offload)));
  const int blocks = std::min(stage.end_layer, model.num_all_layers() - 1) - std::max(stage.first_layer, 1);
  if (stage.recompute.deep_blocks() > blocks)
    violations.push_back(where + fmt::format("recomputes {} blocks of {}", stage.recompute.deep_blocks(),
                                             std::max(0, blocks)));
}

void check_context_parallel(const Plan& plan, const PlanStage& stage, const std::string& where,
                            const PlanFeatures& allowed, std::vector<std::string>& violations) {
  const int cp = stage.shape.cp;
  if (cp == 1) return;
  const std::string degree = where + fmt::format("cp {} ", cp);
  if (cp < 1) {
    violations.push_back(degree + "is not a valid context-parallel degree");
  } else if (!allowed.contains(PlanFeature::context_parallel)) {
    violations.push_back(degree + "is not supported by this version's trainer");
  } else if (!plan.sequence_parallel) {
    violations.push_back(degree + "splits the tokens: set \"sequence_parallel\": true");
  }
}

void check_split_backward(const Plan& plan, size_t p, const PlanFeatures& allowed,
                          std::vector<std::string>& violations) {
  const std::vector<PlanStage>& stages = plan.pipelines[p].stages;
  for (size_t s = 0; s < stages.size(); ++s) {
    const int delay = stages[s].weight_delay;
    if (delay == kWholeBackward) continue;
    const std::string where = at(p, s) + fmt::format("weight_delay {} ", delay);
    if (!allowed.contains(PlanFeature::split_backward)) {
      violations.push_back(where + "is not supported by this version's trainer");
    } else if (plan.interleave > 1) {
      violations.push_back(where + "does not go with interleaved chunks");
    } else if (plan.zero >= Zero::gradients) {
      violations.push_back(where + fmt::format("does not go with {}, which sums the gradients of every "
                                               "microbatch: use zero \"{}\"",
                                               short_name(plan.zero), to_string(Zero::optimizer)));
    } else if (delay > static_cast<int>(s)) {
      violations.push_back(where + fmt::format("is above the stage's number, {}", s));
    }
  }
}

// GPUs of a group of pipelines that hold a part of a layer, or, one past the last, of the matrix that the
// first and the last layer share.
int holders_of(const Plan& plan, const PipelineRange& pipelines, int layer) {
  int holders = 0;
  for (int p = pipelines.first; p < pipelines.end; ++p) {
    const std::vector<PlanStage>& stages = plan.pipelines[static_cast<size_t>(p)].stages;
    const bool tied = layer >= stages.back().end_layer;
    for (const PlanStage& stage : stages) {
      const bool is_end = &stage == &stages.front() || &stage == &stages.back();
      if (tied ? is_end : stage.first_layer <= layer && layer < stage.end_layer)
        holders += stage.shape.copies();
    }
  }
  return holders;
}

// Ranks with the same place in each group hold the same elements. Empty if they do.
std::string zero_group_problem(const Plan& plan, const ModelSpec& model) {
  const int pipelines = static_cast<int>(plan.pipelines.size());
  if (plan.zero == Zero::none) return "has no meaning without ZeRO";
  if (plan.zero_group < 0 || plan.zero_group >= pipelines || pipelines % plan.zero_group != 0)
    return fmt::format("does not divide {} pipelines into groups", pipelines);
  for (int layer = 0; layer < model.num_all_layers() + (model.tied_embeddings ? 1 : 0); ++layer) {
    const std::string what =
        layer < model.num_all_layers() ? fmt::format("layer {}", layer) : std::string("the tied embedding");
    const int first = holders_of(plan, zero_group_of(plan, 0), layer);
    for (int p = 0; p < pipelines; p += plan.zero_group) {
      const int holders = holders_of(plan, zero_group_of(plan, p), layer);
      if (holders < 2)
        return fmt::format("leaves {} to one rank of pipeline {}, which shares it with nobody", what, p);
      if (holders != first)
        return fmt::format(
            "needs as many ranks for a layer in every group: {} has {} in that of pipeline 0, "
            "{} in that of pipeline {}",
            what, first, holders, p);
    }
  }
  return "";
}

void check_zero_groups(const Plan& plan, const ModelSpec& model, const PlanFeatures& allowed,
                       std::vector<std::string>& violations) {
  if (plan.zero_group == 0) return;
  const std::string problem = allowed.contains(PlanFeature::hybrid_zero)
                                  ? zero_group_problem(plan, model)
                                  : "is not supported by this version's trainer";
  if (!problem.empty()) violations.push_back(fmt::format("zero_group {} {}", plan.zero_group, problem));
}

// Checks that the chunks of a group are on the same GPUs, and that the schedule exists.
void check_interleaved(const Plan& plan, size_t p, std::vector<std::string>& violations) {
  const PlanPipeline& pipeline = plan.pipelines[p];
  const size_t chunks = static_cast<size_t>(plan.interleave), groups = pipeline.stages.size() / chunks;
  if (groups < 2 || pipeline.stages.size() % chunks != 0) {
    violations.push_back(
        fmt::format("pipeline {}: {} stages cannot form {} chunks on each of two or more groups of GPUs", p,
                    pipeline.stages.size(), chunks));
    return;
  }
  if (pipeline.microbatches % static_cast<int>(groups) != 0) {
    violations.push_back(fmt::format(
        "pipeline {}: interleaved chunks on {} groups of GPUs need a multiple of {} microbatches, not {}", p,
        groups, groups, pipeline.microbatches));
  }
  for (size_t s = groups; s < pipeline.stages.size(); ++s) {
    const PlanStage &stage = pipeline.stages[s], &first = pipeline.stages[s % groups];
    if (stage.shape != first.shape || stage.gpu_type != first.gpu_type || stage.zone != first.zone ||
        stage.node != first.node || stage.gpus != first.gpus) {
      violations.push_back(
          at(p, s) +
          fmt::format("must be on the same GPUs as stage {}: both are chunks of one group", s % groups));
    }
    if (stage.offload != first.offload)
      violations.push_back(at(p, s) +
                           fmt::format("offload \"{}\" differs from that of stage {}, another chunk "
                                       "of its group",
                                       to_string(stage.offload), s % groups));
  }
}

void check_microbatches(const Plan& plan, const PlanFeatures& allowed, std::vector<std::string>& violations) {
  for (const PlanPipeline& pipeline : plan.pipelines)
    if (const int size = microbatch_of(plan, pipeline); size < 1) {
      violations.push_back(fmt::format("microbatch {} must be at least 1", size));
      return;
    }
  if (plan.pipelines.empty() || plan.global_batch < 1) return;
  const int64_t sequences = sequences_of_microbatches(plan);
  if (!has_unlike_microbatches(plan)) {
    const int size = microbatch_of(plan, plan.pipelines.front());
    const int64_t needed = num_microbatches(plan.global_batch, size);
    if (sequences / size != needed)
      violations.push_back(
          fmt::format("{} microbatches of {} do not match the global batch of {}, which needs {}",
                      sequences / size, size, plan.global_batch, needed));
    return;
  }
  if (!allowed.contains(PlanFeature::unlike_microbatches))
    violations.push_back("unlike microbatches are not supported by this version's trainer");
  const int last = microbatch_of(plan, plan.pipelines.back());
  if (sequences < plan.global_batch || sequences - plan.global_batch >= last)
    violations.push_back(fmt::format(
        "the microbatches have {} sequences, the global batch has {}: only the very last one, of {}, "
        "may be smaller",
        sequences, plan.global_batch, last));
}

void check_placed_stage(const PlanStage& stage, const std::string& where, const Snapshot& snapshot,
                        std::set<std::pair<std::string, int>>& used, std::vector<std::string>& violations) {
  const SnapshotNode* node = snapshot.find(stage.node, stage.gpu_type);
  if (node == nullptr) node = snapshot.find(stage.node);
  if (node == nullptr) {
    violations.push_back(where + fmt::format("the cluster has no free node {}", stage.node));
    return;
  }
  if (node->gpu_type != stage.gpu_type) {
    violations.push_back(where + fmt::format("node {} has GPUs of type {}, not {}", stage.node,
                                             node->gpu_type, stage.gpu_type));
  }
  if (node->zone != stage.zone) {
    violations.push_back(where +
                         fmt::format("node {} is in zone {}, not {}", stage.node, node->zone, stage.zone));
  }
  if (static_cast<int>(stage.gpus.size()) != stage.shape.gpus()) {
    violations.push_back(
        where + fmt::format("{} GPUs are listed for {}", stage.gpus.size(), degrees_text(stage.shape)));
  }
  for (int gpu : stage.gpus) {
    if (gpu >= node->gpus) {
      violations.push_back(where + fmt::format("node {} has {} GPUs, numbered from 0: there is no GPU {}",
                                               stage.node, node->gpus, gpu));
    } else if (std::find(node->free_gpus.begin(), node->free_gpus.end(), gpu) == node->free_gpus.end()) {
      violations.push_back(where + fmt::format("GPU {} of node {} is not free", gpu, stage.node));
    } else if (!used.insert({stage.node, gpu}).second) {
      violations.push_back(where + fmt::format("GPU {} of node {} is used twice", gpu, stage.node));
    }
  }
}

}  // namespace

bool can_sum_in_one_order(const Plan& plan) {
  if (plan.zero < Zero::gradients || (plan.zero == Zero::gradients && plan.interleave == 1)) return true;
  const auto cut_of = [&](int pipeline) {
    std::vector<int> cut;
    for (const PlanStage& stage : plan.pipelines[static_cast<size_t>(pipeline)].stages)
      cut.push_back(stage.end_layer);
    return cut;
  };
  for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p)
    if (cut_of(p) != cut_of(zero_group_of(plan, p).first)) return false;
  return true;
}

bool zero_groups_match(const Plan& plan, const ModelSpec& model) {
  return plan.zero_group == 0 || zero_group_problem(plan, model).empty();
}

std::vector<std::string> check_plan(const Plan& plan, const JobSpec& job, const PlanFeatures& allowed) {
  std::vector<std::string> violations;
  if (plan.model != job.model.name) {
    violations.push_back(
        fmt::format("the plan is for the model \"{}\", the job trains \"{}\"", plan.model, job.model.name));
  }
  if (plan.global_batch != job.training.global_batch) {
    violations.push_back(
        fmt::format("global batch {} is not the job's {}", plan.global_batch, job.training.global_batch));
  }
  if (plan.precision && !job.training.allows(*plan.precision))
    violations.push_back(fmt::format("precision {} is not the job's {}", to_string(*plan.precision),
                                     job.training.precision_name()));
  if (!plan.precision && job.training.fallback_precision)
    violations.push_back(
        fmt::format("the plan does not say its precision, and the job leaves it to the plan "
                    "(training.precision: {}): add \"precision\": \"{}\" or \"{}\"",
                    job.training.precision_name(), to_string(job.training.precision),
                    to_string(*job.training.fallback_precision)));
  if (plan.pipelines.empty()) violations.push_back("the plan has no pipelines");
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    const PlanPipeline& pipeline = plan.pipelines[p];
    if (pipeline.microbatches < 1) {
      violations.push_back(
          fmt::format("pipeline {}: {} microbatches, at least one is needed", p, pipeline.microbatches));
    }
    check_layers(pipeline, p, job.model.num_all_layers(), violations);
    for (size_t s = 0; s < pipeline.stages.size(); ++s) {
      check_stage(pipeline.stages[s], at(p, s), job.model, allowed, violations);
      check_context_parallel(plan, pipeline.stages[s], at(p, s), allowed, violations);
    }
    check_split_backward(plan, p, allowed, violations);
  }
  check_microbatches(plan, allowed, violations);
  if (plan.zero > zero_degrees(allowed).back())
    violations.push_back(fmt::format("{}: {} sharding is not supported by this version's trainer",
                                     short_name(plan.zero), to_string(plan.zero)));
  check_zero_groups(plan, job.model, allowed, violations);
  if (plan.sequence_parallel && !allowed.contains(PlanFeature::sequence_parallel))
    violations.push_back("sequence_parallel is not supported by this version's trainer");
  if (plan.interleave < 1) {
    violations.push_back(fmt::format("interleave {} must be at least 1", plan.interleave));
  } else if (plan.interleave > 1) {
    for (size_t p = 0; p < plan.pipelines.size(); ++p) check_interleaved(plan, p, violations);
  }
  if (!can_sum_in_one_order(plan))
    violations.push_back(
        fmt::format("{}{} needs the same stages in all pipelines, which exchange {} layer by layer in one "
                    "order: cut the layers alike, or use zero \"{}\"",
                    short_name(plan.zero), plan.interleave > 1 ? " with interleaved chunks" : "",
                    plan.zero == Zero::gradients ? "gradients" : "weights and gradients",
                    to_string(plan.interleave > 1 ? Zero::optimizer : Zero::gradients)));
  if (plan.zero >= Zero::parameters && job.training.lora)
    violations.push_back(
        fmt::format("{} shards what is trained, which of adapters (training.lora) is little: use zero \"{}\"",
                    short_name(plan.zero), to_string(Zero::optimizer)));
  return violations;
}

std::vector<std::string> check_placement(const Plan& plan) {
  std::vector<std::string> violations;
  std::set<std::pair<std::string, int>> used;
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (size_t s = 0; s < static_cast<size_t>(num_groups(plan, plan.pipelines[p])); ++s) {
      const PlanStage& stage = plan.pipelines[p].stages[s];
      if (stage.node.empty()) continue;
      for (int gpu : stage.gpus)
        if (!used.insert({stage.node, gpu}).second)
          violations.push_back(at(p, s) + fmt::format("GPU {} of node {} is used twice", gpu, stage.node));
    }
  }
  return violations;
}

std::vector<std::string> check_plan(const Plan& plan, const Snapshot& snapshot) {
  std::vector<std::string> violations;
  std::map<std::pair<std::string, std::string>, int> used;
  std::set<std::pair<std::string, int>> used_gpus;
  bool unplaced = false;
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (size_t s = 0; s < static_cast<size_t>(num_groups(plan, plan.pipelines[p])); ++s) {
      const PlanStage& stage = plan.pipelines[p].stages[s];
      used[{stage.zone, stage.gpu_type}] += stage.shape.gpus();
      if (stage.node.empty()) {
        unplaced = true;
      } else {
        check_placed_stage(stage, at(p, s), snapshot, used_gpus, violations);
      }
    }
  }
  auto free = snapshot.free_by_zone_and_type();
  for (const auto& [key, count] : used) {
    auto it = free.find(key);
    int available = it == free.end() ? 0 : it->second;
    if (count > available) {
      violations.push_back(fmt::format("{} GPUs of type {} in zone {} are needed, {} are free", count,
                                       key.second, key.first, available));
    }
  }
  std::map<std::string, int> of_type;  // all types under an empty name
  for (const auto& [key, count] : used) {
    of_type[key.second] += count;
    of_type[""] += count;
  }
  for (const GpuLimit& limit : snapshot.limits)
    if (of_type[limit.gpu_type] > limit.gpus)
      violations.push_back(fmt::format("{} GPUs{}{} are needed: {}", of_type[limit.gpu_type],
                                       limit.gpu_type.empty() ? "" : " of type ", limit.gpu_type,
                                       limit.reason));
  if (violations.empty() && unplaced) {
    Plan copy = plan;
    try {
      place(copy, snapshot);
    } catch (const std::runtime_error& error) {
      violations.push_back(error.what());
    }
  }
  return violations;
}

}  // namespace sailor
