#include "spank_plugin/slurm/commands/job_share.h"

#include <cstdlib>
#include <string_view>

#include "planner/spec/error.h"
#include "planner/spec/host_list.h"
#include "spank_plugin/slurm/commands/gres.h"
#include "spank_plugin/slurm/commands/scontrol.h"

namespace sailor {

// ` Nodes=n[1-2] CPU_IDs=0-5 Mem=2000 GRES=gpu:big:2(IDX:0-1)` for each group of equal nodes; an entry in
// parentheses is absent. Memory is in MB.
std::map<std::string, JobShare> shares_in_scontrol(const std::string& line) {
  constexpr std::string_view kGroup = " Nodes=";
  std::map<std::string, JobShare> shares;
  for (size_t at = line.find(kGroup); at != std::string::npos;) {
    const size_t next = line.find(kGroup, at + 1);
    const std::string group = line.substr(at, next == std::string::npos ? next : next - at);
    const JobShare share{static_cast<int>(parse_index_ranges(scontrol_value(group, "CPU_IDs")).size()),
                         std::atoll(scontrol_value(group, "Mem").c_str()), scontrol_value(group, "GRES")};
    try {
      for (const std::string& node : expand_host_list(scontrol_value(group, "Nodes"))) shares[node] = share;
    } catch (const InputError&) {  // (null)
    }
    at = next;
  }
  return shares;
}

}  // namespace sailor
