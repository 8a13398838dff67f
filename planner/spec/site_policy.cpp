#include "planner/spec/site_policy.h"

#include <algorithm>
#include <optional>

namespace sailor {
namespace {

constexpr int kMostGpus = 1'000'000;

// The limit of `TYPE` or `TYPE@ZONE` that the job asks for itself; nothing if it has none.
std::optional<int> own_limit(const JobSpec& job, const PlanOverrides& overrides, const std::string& name) {
  if (const auto given = overrides.max_gpus.find(name); given != overrides.max_gpus.end())
    return given->second;
  const size_t at = name.rfind('@');
  if (at == std::string::npos) {
    const auto limit = job.resources.max_gpus.find(name);
    return limit == job.resources.max_gpus.end() ? std::nullopt : std::optional(limit->second);
  }
  const auto of_type = job.resources.max_gpus_in_zone.find(name.substr(0, at));
  if (of_type == job.resources.max_gpus_in_zone.end()) return std::nullopt;
  const auto limit = of_type->second.find(name.substr(at + 1));
  return limit == of_type->second.end() ? std::nullopt : std::optional(limit->second);
}

}  // namespace

SitePolicy read_site_policy(const Field& field) {
  MapField map(field, {"planning", "reason", "users", "groups", "max_gpus"});
  SitePolicy policy;
  if (const auto planning = map.optional("planning")) policy.planning = planning->boolean();
  if (const auto reason = map.optional("reason")) policy.reason = reason->text();
  if (const auto users = map.optional("users"))
    for (const Field& user : users->items()) policy.users.push_back(user.name());
  if (const auto groups = map.optional("groups"))
    for (const Field& group : groups->items()) policy.groups.push_back(group.name());
  if (const auto limits = map.optional("max_gpus")) {
    for (const auto& [type, limit] : limits->entries()) {
      if (!limit.is_map() || type == kTotalGpus) {
        policy.max_gpus[type] = limit.integer<int>(0, kMostGpus);
        continue;
      }
      for (const auto& [zone, in_zone] : limit.entries())
        policy.max_gpus[type + "@" + zone] = in_zone.integer<int>(0, kMostGpus);
    }
  }
  return policy;
}

void apply(const SitePolicy& policy, const JobSpec& job, PlanOverrides& overrides) {
  for (const auto& [name, most] : policy.max_gpus)
    overrides.max_gpus[name] = std::min(most, own_limit(job, overrides, name).value_or(most));
}

}  // namespace sailor
