#include "spank_plugin/slurm/commands/tres.h"

#include <cstdlib>

#include "planner/spec/name_list.h"
#include "spank_plugin/slurm/commands/gres.h"

namespace sailor {
namespace {

std::string without_prefix(const std::string& entry) {
  for (const std::string prefix : {"gres/", "gres:"})
    if (entry.starts_with(prefix)) return entry.substr(prefix.size());
  return entry;
}

}  // namespace

std::map<std::string, int> gpus_of_request(const std::string& per_node, const std::string& of_job,
                                           int nodes) {
  std::map<std::string, int> gpus;
  for (const std::string& entry : split_commas(per_node)) {
    for (const Gres& gres : parse_gres(without_prefix(entry)))
      if (gres.name == "gpu" && gres.count > 0)
        gpus[gres.type.empty() ? "gpu" : "gpu:" + gres.type] += gres.count;
  }
  if (!gpus.empty()) return gpus;
  for (const std::string& entry : split_commas(of_job)) {
    const size_t sign = entry.find('=');
    const std::string name = without_prefix(entry.substr(0, sign));
    if (sign == std::string::npos || (name != "gpu" && !name.starts_with("gpu:"))) continue;
    const int count = std::atoi(entry.c_str() + sign + 1);
    if (count > 0 && count <= kMostGres) gpus[name] = (count + nodes - 1) / nodes;
  }
  // The sum over all types, beside them.
  if (gpus.size() > 1) gpus.erase("gpu");
  return gpus;
}

int64_t memory_mb_in(const std::string& of_job) {
  for (const std::string& entry : split_commas(of_job)) {
    if (!entry.starts_with("mem=")) continue;
    char* unit = nullptr;
    const double number = std::strtod(entry.c_str() + 4, &unit);
    if (!(number >= 0 && number < 1e12)) return 0;
    switch (*unit) {
      case 'K':
        return static_cast<int64_t>(number / 1024);
      case 'G':
        return static_cast<int64_t>(number * 1024);
      case 'T':
        return static_cast<int64_t>(number * 1024 * 1024);
      default:
        return static_cast<int64_t>(number);
    }
  }
  return 0;
}

}  // namespace sailor
