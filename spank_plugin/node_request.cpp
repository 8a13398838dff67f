#include "spank_plugin/node_request.h"

#include <fmt/format.h>

#include <vector>

#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {

bool may_move(const SubmitOptions& options, bool has_nodelist, const PlannedJob& planned) {
  return !options.pin && !has_nodelist && planned.shape.why_not.empty();
}

void request_shape(PlannedJob& planned, bool starts_later) {
  for (size_t i = 0; i < planned.components.size(); ++i) {
    planned.components[i].constraint = planned.shape.constraints[i];
    planned.components[i].by_name = !starts_later;
  }
}

std::string nodes_text(const PlannedJob& planned) {
  std::vector<std::string> names;
  for (const Component& component : planned.components)
    names.insert(names.end(), component.nodes.begin(), component.nodes.end());
  return compress_hosts(names);
}

std::string waiting_nodes_text(const SubmitOptions& options, const PlannedJob& planned, bool moves) {
  if (moves)
    return fmt::format("note: planned for {}; Slurm may choose equal nodes (--sailor-pin keeps these)\n",
                       nodes_text(planned));
  if (options.pin || planned.shape.why_not.empty()) return "";
  return fmt::format("note: the job waits for exactly {}: {}\n", nodes_text(planned), planned.shape.why_not);
}

}  // namespace sailor
