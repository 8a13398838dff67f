#include "spank_plugin/job_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "spank_plugin/slurm/slurm_view.h"
#include "spank_plugin/slurm/submitted_job.h"

namespace sailor {

std::optional<std::string> first_in_use(const PlannedJob& planned, const std::vector<SlurmNode>& nodes,
                                        std::optional<std::string> (*use)(const SlurmNode&,
                                                                          const NodeNeeds&)) {
  for (const Component& component : planned.components) {
    for (size_t i = 0; i < component.nodes.size(); ++i) {
      const std::string& name = component.nodes[i];
      auto node = std::find_if(nodes.begin(), nodes.end(),
                               [&](const SlurmNode& candidate) { return candidate.name == name; });
      if (node == nodes.end()) return name + " (gone)";
      if (std::optional<std::string> reason = use(*node, component.needs[i]))
        return fmt::format("{} ({})", name, *reason);
    }
  }
  return std::nullopt;
}

FirstLook look_at(uint32_t job_id, const PlannedJob& planned) {
  usleep(1'100'000);  // slurmctld's scheduler runs once a second
  if (!is_pending(job_id)) return {};
  std::optional<std::string> taken = first_in_use(planned, read_nodes(), use_by_running_jobs);
  // The job's own start looks the same as another job's.
  if (taken && !is_pending(job_id)) return {};
  return {true, taken};
}

bool starts_soon(uint32_t job_id) {
  for (const useconds_t pause_us : {1'000'000, 3'000'000}) {
    usleep(pause_us);
    if (!is_pending(job_id)) return true;
  }
  return false;
}

}  // namespace sailor
