#include "planner/search/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>

#include "planner/plan/validate.h"
#include "planner/process/seconds_since.h"
#include "planner/spec/busy_nodes.h"

namespace sailor {
namespace {

constexpr double kEffort_s = 0.1;  // for a question

// Searches for a plan under relaxed conditions, with little effort for each question. The time for the whole
// explanation is a safety net: when it is spent, the remaining questions stay unasked.
class Relaxed {
 public:
  Relaxed(const PlanningContext& context, const PlanOptions& options)
      : context_(context), options_(options), started_(std::chrono::steady_clock::now()) {
    options_.top_k = 1;
    options_.explain = false;
    // Where nothing fits it takes a search of its own each time, and changes an answer little.
    options_.allow.erase(PlanFeature::zero3);
    options_.effort_limit_s = std::min(options.time_limit_s / 4, kEffort_s);
    limit_s_ = std::clamp(options.time_limit_s, 0.1, 10.0);
  }
  bool spent() const { return left_s() < 0.01; }
  SearchResult best(const JobSpec& job) const {
    return search({job, context_.snapshot, context_.catalog, context_.profiles, context_.framework},
                  options_);
  }
  // A plan, if there is one.
  std::optional<Candidate> any(const JobSpec& job, const Snapshot& snapshot, const Catalog& catalog) const {
    PlanOptions options = options_;
    options.any_plan = true;
    SearchResult result = search({job, snapshot, catalog, context_.profiles, context_.framework}, options);
    if (result.status != SearchStatus::found) return std::nullopt;
    return std::move(result.candidates.front());
  }

 private:
  SearchResult search(const PlanningContext& context, PlanOptions options) const {
    options.time_limit_s = std::clamp(options.time_limit_s / 3, 0.01, std::max(0.01, left_s()));
    return sailor::search(context, options);
  }
  double left_s() const { return limit_s_ - seconds_since(started_); }

  const PlanningContext& context_;
  PlanOptions options_;
  double limit_s_;
  const std::chrono::steady_clock::time_point started_;
};

double gib(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 30);
}

// The limits are the reason when a plan appears without them; then its figures say how far they are from what
// is possible.
std::string explain_limits(const PlanningContext& context, const Relaxed& relaxed) {
  const ConstraintSpec& limits = context.job.constraints;
  const auto limited = [&](Expense expense) { return limits.most[expense].has_value(); };
  if (std::none_of(kExpenses.begin(), kExpenses.end(), limited) && !limits.min_iterations_per_s) return "";
  const auto best_without_limits = [&](Objective objective) {
    JobSpec job = context.job;
    job.objective = objective;
    job.constraints = {};
    return relaxed.best(job);
  };
  std::string text;
  std::vector<std::string> names;
  for (const Expense expense : kExpenses) {
    if (!limited(expense)) continue;
    names.push_back("raise " + limit_key(expense));
    if (!text.empty()) continue;
    const SearchResult least = best_without_limits(expense);
    if (least.status != SearchStatus::found) return "";
    const double spent = least.candidates.front().prediction.total(expense);
    const ExpenseKind& kind = kind_of(expense);
    if (spent > *limits.most[expense])
      text = fmt::format(
          "the {} plan found {} {:.5g} {} per iteration, the limit is {:.5g}: raise {} to {:.5g}", kind.least,
          kind.takes, spent, kind.unit, *limits.most[expense], limit_key(expense), spent);
  }
  if (limits.min_iterations_per_s) names.push_back("lower min_iterations_per_s");
  if (limits.min_iterations_per_s && text.empty()) {
    const SearchResult fastest = best_without_limits(Objective::throughput);
    if (fastest.status != SearchStatus::found) return "";
    const double speed = fastest.candidates.front().prediction.iterations_per_s();
    if (speed < *limits.min_iterations_per_s)
      text = fmt::format(
          "the fastest plan found reaches {:.5g} iterations/s, the limit is {:.5g}: lower "
          "min_iterations_per_s to {:.5g}, or add GPUs",
          speed, *limits.min_iterations_per_s, speed);
  }
  if (text.empty())
    text = fmt::format("each limit can be met alone, but not all together: {}", fmt::join(names, " or "));
  return text;
}

std::string explain_memory(const PlanningContext& context, const Relaxed& relaxed) {
  int64_t largest = 0;
  for (const SnapshotNode& node : context.snapshot.nodes)
    if (context.profiles.usable(node.gpu_type))
      largest = std::max(largest, context.catalog.at(node.gpu_type).memory_bytes);
  JobSpec job = context.job;
  job.constraints = {};
  // Bisection: the smallest of these factors on the memory of every GPU with which there is a plan.
  constexpr std::array kFactors = {1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 64.0};
  std::optional<double> needed_gib;
  for (size_t low = 0, high = kFactors.size(); low < high;) {
    if (relaxed.spent()) break;
    const size_t middle = (low + high) / 2;
    Catalog catalog = context.catalog;
    for (auto& [name, type] : catalog.gpu_types)
      type.memory_bytes =
          static_cast<int64_t>(std::min(9e18, static_cast<double>(type.memory_bytes) * kFactors[middle]));
    if (const auto found = relaxed.any(job, context.snapshot, catalog)) {
      needed_gib = gib(found->prediction.peak_memory_bytes());
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (!needed_gib) return "";
  return fmt::format(
      "memory: a stage needs {:.3g} GiB, the largest GPU has {:.3g} GiB: use GPUs with {:.3g} GiB, or "
      "more of them",
      *needed_gib, gib(largest), *needed_gib);
}

// More nodes of one type, as many as there are, until a plan appears.
std::string explain_gpus(const PlanningContext& context, const Relaxed& relaxed) {
  std::map<std::string, std::vector<SnapshotNode>> by_type;
  for (const SnapshotNode& node : context.snapshot.nodes)
    if (context.profiles.usable(node.gpu_type) && !node.free_gpus.empty())
      by_type[node.gpu_type].push_back(node);
  for (int copies : {1, 2, 4, 8})
    for (const auto& [type, nodes] : by_type) {
      if (relaxed.spent()) return "";
      Snapshot snapshot = context.snapshot;
      int added = 0;
      for (int copy = 1; copy <= copies; ++copy)
        for (SnapshotNode node : nodes) {
          node.name += fmt::format("+{}", copy);
          added += static_cast<int>(node.free_gpus.size());
          snapshot.nodes.push_back(std::move(node));
        }
      JobSpec job = context.job;
      job.resources.max_gpus.clear();
      job.resources.max_gpus_in_zone.clear();
      if (relaxed.any(job, snapshot, context.catalog))
        return fmt::format("too few free GPUs: {} more of type \"{}\" would be enough", added, type);
    }
  return "";
}

bool in(const std::vector<std::string>& filter, const std::string& name) {
  return filter.empty() || std::find(filter.begin(), filter.end(), name) != filter.end();
}

// The busy nodes that the job would take.
std::vector<BusyNode> wanted_busy_nodes(const PlanningContext& context) {
  const ResourceSpec& limits = context.job.resources;
  std::vector<BusyNode> wanted;
  for (const BusyNode& busy : context.snapshot.busy) {
    if (limits.most_gpus(busy.node.gpu_type, busy.node.zone) > 0 && in(limits.zones, busy.node.zone) &&
        in(limits.partitions, busy.node.partition) && context.profiles.usable(busy.node.gpu_type))
      wanted.push_back(busy);
  }
  return wanted;
}

// Others hold the nodes that a plan would need.
std::string explain_busy(const PlanningContext& context, const Relaxed& relaxed) {
  const std::vector<BusyNode> wanted = wanted_busy_nodes(context);
  if (wanted.empty()) return "";
  Snapshot all_free = context.snapshot;
  for (const BusyNode& busy : wanted) all_free.nodes.push_back(busy.node);
  if (!relaxed.any(context.job, all_free, context.catalog)) return "";
  return fmt::format("every feasible plan needs busy nodes: {}: {}", busy_nodes_text(wanted), kHowToWait);
}

// The quotas are the reason when a plan appears without them. A quota of 0 is a choice, and stays.
std::string explain_quotas(const PlanningContext& context, const Relaxed& relaxed) {
  JobSpec job = context.job;
  const auto lift = [](std::map<std::string, int>& limits) {
    return std::erase_if(limits, [](const auto& limit) { return limit.second > 0; });
  };
  size_t lifted = lift(job.resources.max_gpus);
  for (auto& [type, limits] : job.resources.max_gpus_in_zone) lifted += lift(limits);
  if (lifted == 0 || relaxed.spent()) return "";
  const auto found = relaxed.any(job, context.snapshot, context.catalog);
  if (!found) return "";
  std::map<std::string, int> gpus;
  const Plan& plan = found->plan;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (int group = 0; group < num_groups(plan, pipeline); ++group) {
      const PlanStage& stage = pipeline.stages[static_cast<size_t>(group)];
      gpus[stage.gpu_type + " in zone " + stage.zone] += stage.shape.gpus();
    }
  std::vector<std::string> texts;
  for (const auto& [where, count] : gpus) texts.push_back(fmt::format("{} {}", count, where));
  return fmt::format(
      "the quotas (resources.max_gpus, --max-gpus) are too small: without them there is a plan on {}",
      fmt::join(texts, ", "));
}

// The cluster's limits are the reason when a plan appears without them: those that it exceeds.
std::string explain_cluster_limits(const PlanningContext& context, const Relaxed& relaxed) {
  if (context.snapshot.limits.empty() || relaxed.spent()) return "";
  Snapshot unlimited = context.snapshot;
  unlimited.limits.clear();
  const auto found = relaxed.any(context.job, unlimited, context.catalog);
  if (!found) return "";
  std::vector<std::string> reasons;
  for (const GpuLimit& limit : context.snapshot.limits) {
    unlimited.limits = {limit};
    if (!check_plan(found->plan, unlimited).empty()) reasons.push_back(limit.reason);
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

// "X (2 nodes), Y (1 node)", most nodes first.
std::string with_node_counts(const std::map<std::string, int>& nodes) {
  constexpr size_t kMost = 4;
  std::vector<std::pair<std::string, int>> sorted(nodes.begin(), nodes.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> texts;
  for (const auto& [text, count] : sorted) {
    if (texts.size() == kMost) {
      texts.back() += ", ...";
      break;
    }
    texts.push_back(fmt::format("{} ({} node{})", text, count, count == 1 ? "" : "s"));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Why nodes of the cluster are not in the snapshot: "drained (2 nodes)"; empty when all are.
std::string left_out_nodes(const Snapshot& snapshot) {
  std::map<std::string, int> nodes;
  for (const std::string& line : snapshot.not_free) {
    const size_t colon = line.find(": ");
    ++nodes[colon == std::string::npos ? line : line.substr(colon + 2)];
  }
  return with_node_counts(nodes);
}

// Types with free GPUs that the job may use, but for a profile: "type X (2 nodes)".
std::string unprofiled_types(const PlanningContext& context) {
  const ResourceSpec& limits = context.job.resources;
  std::map<std::string, int> nodes;
  for (const SnapshotNode& node : context.snapshot.nodes)
    if (!node.free_gpus.empty() && in(limits.zones, node.zone) && in(limits.partitions, node.partition) &&
        !context.profiles.usable(node.gpu_type))
      ++nodes["type " + node.gpu_type];
  return with_node_counts(nodes);
}

// What binds, and the smallest change that helps.
std::string what_binds(const PlanningContext& context, const PlanOptions& options,
                       const SearchResult& result) {
  const std::string left_out = left_out_nodes(context.snapshot);
  if (context.snapshot.nodes.empty() && context.snapshot.busy.empty())
    return left_out.empty() ? fmt::format("the cluster has no nodes (snapshot: {})", context.snapshot.file)
                            : fmt::format("no node of the cluster can be used: {} (snapshot: {})", left_out,
                                          context.snapshot.file);
  int free = 0, wanted = 0;
  const ResourceSpec& limits = context.job.resources;
  for (const SnapshotNode& node : context.snapshot.nodes) {
    free += static_cast<int>(node.free_gpus.size());
    if (in(limits.zones, node.zone) && in(limits.partitions, node.partition))
      wanted += static_cast<int>(node.free_gpus.size());
  }
  const Relaxed relaxed(context, options);
  if (std::string text = explain_busy(context, relaxed); !text.empty()) return text;
  if (free == 0)
    return fmt::format("no GPU of the cluster is free now{}: wait, or ask for other partitions",
                       left_out.empty() ? "" : ", unavailable nodes: " + left_out);
  if (wanted == 0) {
    std::string where;
    if (!limits.zones.empty()) where += fmt::format(" zone {}", fmt::join(limits.zones, ", "));
    if (!limits.partitions.empty())
      where +=
          fmt::format("{} partition {}", where.empty() ? "" : " and", fmt::join(limits.partitions, ", "));
    return fmt::format("no GPU is free in{}: wait, or allow other zones and partitions", where);
  }
  if (std::string text = explain_cluster_limits(context, relaxed); !text.empty()) return text;
  if (std::string text = explain_limits(context, relaxed); !text.empty()) return text;
  if (std::string text = explain_quotas(context, relaxed); !text.empty()) return text;
  const auto count = [&](const char* reason) {
    const auto it = result.rejected.find(reason);
    return it == result.rejected.end() ? 0 : it->second;
  };
  if (count("memory") > 0) {
    std::string text = explain_memory(context, relaxed);
    const std::string gpus = explain_gpus(context, relaxed);
    if (!text.empty() && !gpus.empty()) return text + "; or: " + gpus;
    if (!text.empty() || !gpus.empty()) return text + gpus;
  }
  if (result.stats.configurations == 0) {
    const std::string types = unprofiled_types(context);
    return fmt::format(
        "no free GPU has a layer profile of this model that fits the job{}: measure it with `sailor "
        "profile`, or "
        "change resources.max_gpus, zones or partitions",
        types.empty() ? "" : ", there is none for " + types);
  }
  if (std::string text = explain_gpus(context, relaxed); !text.empty()) return text;
  return "no combination of free GPUs, profiled cells and links gives a plan";
}

}  // namespace

std::string explain_infeasible(const PlanningContext& context, const PlanOptions& options,
                               const SearchResult& result) {
  std::vector<std::string> counts;
  for (const auto& [reason, count] : result.rejected) counts.push_back(fmt::format("{} x {}", count, reason));
  const std::string text = what_binds(context, options, result);
  return counts.empty() ? text : fmt::format("{} (rejected: {})", text, fmt::join(counts, ", "));
}

}  // namespace sailor
