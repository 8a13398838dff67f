#include "spank_plugin/permission.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <vector>

#include "planner/spec/name_list.h"

namespace sailor {

User this_user() {
  User user{geteuid(), {}, {}};
  if (const passwd* entry = getpwuid(user.id)) user.name = entry->pw_name;
  std::vector<gid_t> ids(static_cast<size_t>(std::max(0, getgroups(0, nullptr))));
  ids.resize(static_cast<size_t>(std::max(0, getgroups(static_cast<int>(ids.size()), ids.data()))));
  ids.push_back(getegid());
  for (const gid_t id : ids)
    if (const group* entry = getgrgid(id)) user.groups.insert(entry->gr_name);
  return user;
}

std::string reason_not_to_plan(const SitePolicy& policy, const User& user) {
  if (!policy.planning) {
    return policy.reason.empty() ? "planning is switched off on this cluster"
                                 : fmt::format("planning is switched off on this cluster: {}", policy.reason);
  }
  if (user.id == 0 || (policy.users.empty() && policy.groups.empty())) return "";
  if (contains(policy.users, user.name)) return "";
  if (std::any_of(policy.groups.begin(), policy.groups.end(),
                  [&](const std::string& group) { return user.groups.contains(group); }))
    return "";
  return fmt::format("this cluster does not plan jobs of user {}", user.name);
}

std::string reason_not_to_use(const SitePolicy& policy, const Plan& plan) {
  std::map<std::string, int> gpus;
  for (const auto& [type, zones] : gpu_counts_of(plan))
    for (const auto& [zone, count] : zones) {
      gpus[type] += count;
      gpus[kTotalGpus] += count;
      gpus[type + "@" + zone] = count;
    }
  for (const auto& [name, most] : policy.max_gpus)
    if (gpus.contains(name) && gpus.at(name) > most)
      return fmt::format("the plan has {} GPUs{}, this cluster allows a job {}", gpus.at(name),
                         name == kTotalGpus ? "" : " of " + name, most);
  return "";
}

}  // namespace sailor
