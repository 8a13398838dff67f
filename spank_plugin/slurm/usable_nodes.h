// Which nodes a waiting job could have, whatever runs there. Pure; the view outlives the object.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {

class UsableNodes {
 public:
  explicit UsableNodes(const SlurmView& view);

  // What the job needs of the node; nothing if it can never use it.
  std::optional<NodeNeeds> needs_of(const SlurmWaitingJob& job, const SlurmNode& node) const;
  std::vector<std::string> names(const SlurmWaitingJob& job) const;

 private:
  const SlurmView& view_;
  std::unordered_map<std::string, std::vector<const SlurmPartition*>> partitions_of_;
};

}  // namespace sailor
