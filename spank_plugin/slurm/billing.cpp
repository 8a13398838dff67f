#include "spank_plugin/slurm/billing.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "planner/spec/name_list.h"

namespace sailor {
namespace {

// Memory has megabytes as its unit: `0.25G` is a quarter for each gigabyte.
double megabytes(const char* suffix) {
  static const char kUnits[] = "KMGTP";
  if (*suffix == '\0') return 1;
  const char* unit = std::strchr(kUnits, *suffix & ~0x20);
  double size = 1.0 / 1024;
  for (const char* of = kUnits; unit != nullptr && of < unit; ++of) size *= 1024;
  return unit == nullptr ? 1 : size;
}

double amount_of(const std::string& resource, const char* suffix, const BilledNode& node) {
  const auto is = [&](const char* name) { return strcasecmp(resource.c_str(), name) == 0; };
  if (is("cpu")) return node.cpus;
  if (is("node")) return 1;
  if (is("mem")) return static_cast<double>(node.memory_mb) / megabytes(suffix);
  constexpr size_t kPrefix = 5;
  if (strncasecmp(resource.c_str(), "gres/", kPrefix) != 0) return 0;
  const auto gres = node.gres.find(resource.substr(kPrefix));
  return gres == node.gres.end() ? 0 : gres->second;
}

}  // namespace

double billing_units(const std::string& weights, const BilledNode& node, bool most) {
  if (weights.empty()) return node.cpus;
  double units = 0;
  for (const std::string& entry : split_commas(weights)) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    const char* value = entry.c_str() + equals + 1;
    char* suffix = nullptr;
    const double weight = std::strtod(value, &suffix);
    const double of_resource = weight * amount_of(entry.substr(0, equals), suffix, node);
    units = most ? std::max(units, of_resource) : units + of_resource;
  }
  return units;
}

}  // namespace sailor
