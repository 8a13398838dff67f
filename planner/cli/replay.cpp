// sailor replay: how much training a job gets done while the GPUs of a trace come and go.
#include "planner/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "planner/cli/cluster_source.h"
#include "planner/cli/commands.h"
#include "planner/cli/output.h"
#include "planner/cli/plan_source.h"
#include "planner/report/replay_table.h"
#include "planner/spec/error.h"
#include "planner/spec/text.h"

namespace sailor::cli {
namespace {

// What the trace leaves open is on the command line or as in the cluster.
std::vector<ReplayPool> pools_of(const AvailabilityTrace& trace, const ReplayCommand& command,
                                 const Snapshot& cluster) {
  std::vector<ReplayPool> pools;
  for (const TracePool& named : trace.pools) {
    ReplayPool pool;
    pool.gpu_type = named.gpu_type.empty() ? command.gpu_type : named.gpu_type;
    pool.zone = named.zone.empty() ? command.zone : named.zone;
    if (pool.gpu_type.empty())
      throw InputError({trace.file, 0}, "the trace does not say which GPUs it is of: give --gpu-type TYPE");
    for (const SnapshotNode& node : cluster.nodes) {
      if (node.gpu_type != pool.gpu_type || (!pool.zone.empty() && node.zone != pool.zone)) continue;
      pool.zone = node.zone;
      pool.region = node.region;
      pool.gpus_per_node = node.gpus;
      break;
    }
    if (pool.zone.empty()) pool.zone = "trace";
    if (pool.region.empty()) pool.region = pool.zone;
    if (command.gpus_per_node > 0) pool.gpus_per_node = command.gpus_per_node;
    pools.push_back(std::move(pool));
  }
  return pools;
}

// One node of each pool: what planning needs to know of them before the trace begins.
Snapshot kinds_of_nodes(Snapshot cluster, const std::vector<ReplayPool>& pools) {
  TraceCluster nodes(pools, std::move(cluster), 0);
  std::vector<int> one_node;
  for (const ReplayPool& pool : pools) one_node.push_back(pool.gpus_per_node);
  nodes.change_to(one_node);
  return nodes.snapshot();
}

}  // namespace

int run_replay(const ReplayCommand& command) {
  const AvailabilityTrace trace = load_trace(command.trace);
  std::vector<ReplayPool> pools;
  JobSpec job = load_job_spec(command.source.job);
  const PlanningInputs inputs = load_inputs(std::move(job), site_or_default(command.source.config),
                                            command.source.overrides, [&](const SiteConfig& site) {
                                              Snapshot cluster;
                                              if (!command.source.cluster.empty())
                                                cluster = read_cluster(command.source.cluster, site.file);
                                              pools = pools_of(trace, command, cluster);
                                              return kinds_of_nodes(std::move(cluster), pools);
                                            });
  for (const ReplayPool& pool : pools) inputs.catalog.at(pool.gpu_type);

  ReplayInput input;
  input.changes = trace.changes;
  input.end_s = command.until_s.value_or(trace.end_s);
  if (input.end_s <= 0)
    throw InputError({trace.file, 0},
                     "the trace has no duration: say with --until how long its last row holds");
  if (trace.unit == AvailabilityTrace::Unit::nodes)
    for (AvailabilityTrace::Change& change : input.changes)
      for (size_t i = 0; i < pools.size(); ++i) change.count[i] *= pools[i].gpus_per_node;
  std::erase_if(input.changes, [&](const auto& change) { return change.at_s >= input.end_s; });
  input.cluster = [&] { return TraceCluster(pools, inputs.snapshot, command.seed); };

  ReplayOptions options = command.options;
  if (const int64_t every = inputs.job.checkpoint.every_steps; every > 0) options.checkpoint_steps = every;
  if (command.checkpoint_steps) options.checkpoint_steps = *command.checkpoint_steps;
  const std::vector<ReplayOutcome> outcomes =
      replay(inputs.context(), plan_options(request_of(command.source), inputs.site), input, options,
             {ReplayPolicy::elastic, ReplayPolicy::restart, ReplayPolicy::full_set, ReplayPolicy::no_cost});
  if (command.format == Format::json) {
    print(replay_json(inputs.job, outcomes, input.end_s));
    return kDone;
  }
  print_notes(inputs);
  if (command.events) print(replay_events(outcomes.front()) + "\n");
  print(fmt::format("{}: {} changes in {:.4g} h; a reconfiguration takes {:.4g} s, a new start {:.4g} s; "
                    "checkpoints every {}\n",
                    trace.file, input.changes.size() - 1, input.end_s / 3600, options.reconfigure_s,
                    options.restart_s,
                    options.checkpoint_steps > 0 ? fmt::format("{} steps", options.checkpoint_steps)
                                                 : fmt::format("{:.4g} s", options.checkpoint_s)) +
        replay_table(inputs.job, outcomes, input.end_s));
  return kDone;
}

}  // namespace sailor::cli
