#include "spank_plugin/node_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "planner/spec/error.h"
#include "planner/spec/name_list.h"
#include "planner/spec/quantity.h"
#include "planner/spec/text.h"
#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {
void refuse_contradictions(const OptionLookup& option) {
  if (option("array"))
    throw InputError("--array: a planned job is one job; submit each with a plan of its own");
  for (const char* name :
       {"ntasks", "ntasks-per-node", "ntasks-per-socket", "ntasks-per-core", "ntasks-per-gpu", "gres", "gpus",
        "gpus-per-node", "gpus-per-socket", "gpus-per-task", "cpus-per-gpu", "mem-per-gpu"}) {
    if (option(name)) {
      throw InputError(
          fmt::format("--{}: the plan decides it; remove it (--sailor-max-gpus limits the plan)", name));
    }
  }
  if (option("nodefile"))
    throw InputError("--nodefile: use --nodelist, which limits the plan to these nodes");
  if (option("clusters")) throw InputError("--clusters: a plan is made for this cluster; submit it there");
  for (const char* name : {"contiguous", "switches", "spread-job", "distribution"}) {
    if (option(name)) throw InputError(fmt::format("--{}: the plan places the job; remove it", name));
  }
  std::string reservation = option("reservation").value_or("");
  if (reservation.find(',') != std::string::npos)
    throw InputError("--reservation: a planned job uses one reservation, not several");
}

NodeWishes node_wishes(const OptionLookup& option, const SubmitOptions& options, const JobSpec& job) {
  NodeWishes wishes;
  wishes.partitions = options.overrides.partitions;
  if (wishes.partitions.empty()) wishes.partitions = split_commas(option("partition").value_or(""));
  if (wishes.partitions.empty()) wishes.partitions = job.resources.partitions;
  wishes.only_nodes = expand_hosts(option("nodelist").value_or(""));
  wishes.excluded_nodes = expand_hosts(option("exclude").value_or(""));
  wishes.features = option("constraint").value_or("");
  if (std::optional<std::string> nodes = option("nodes")) wishes.max_nodes = parse_max_nodes(*nodes);
  wishes.reservation = option("reservation").value_or("");
  wishes.time_limit_s = parse_duration(option("time").value_or(""));
  wishes.least_time_is_given = option("time-min").has_value();
  wishes.account = option("account").value_or("");
  wishes.qos = option("qos").value_or("");
  wishes.include_busy = options.wait_for_nodes;
  const std::optional<std::string> exclusive = option("exclusive");
  wishes.whole_nodes = exclusive && (exclusive->empty() || *exclusive == "exclusive");
  if (const std::optional<std::string> cpus = option("cpus-per-task"))
    wishes.cpus_per_rank = std::max(1, std::atoi(cpus->c_str()));
  wishes.memory_is_given = option("mem") || option("mem-per-cpu");
  return wishes;
}

std::vector<std::string> repeated_options(const OptionLookup& option) {
  std::vector<std::string> repeated;
  for (const char* name : {"cpus-per-task", "constraint", "mincpus", "tmp", "threads-per-core"}) {
    if (std::optional<std::string> value = option(name))
      repeated.push_back(fmt::format("--{}={}", name, *value));
  }
  return repeated;
}

std::string reason_to_start_later(const OptionLookup& option) {
  for (const char* name : {"begin", "dependency", "hold"}) {
    if (option(name)) return std::string("--") + name;
  }
  return "";
}

}  // namespace sailor
