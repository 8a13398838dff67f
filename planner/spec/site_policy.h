// Section `policy` of the site config: what the administrators allow. Value type.
//
//     policy:
//       planning: false                              # nobody plans; default true
//       reason: maintenance until Friday             # that the refusal gives
//       users: [alice]                               # who may plan besides root and members of the groups;
//       groups: [ml]                                 # without both lines everybody
//       # Of one job, also while it grows; `total`: of all types together.
//       max_gpus: {TYPE: 16, OTHER: {z1: 4}, total: 32}
//
// A site config with this section cannot be replaced by a user's own (load_site_under in site_config.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/spec/field.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/overrides.h"

namespace sailor {

struct SitePolicy {
  bool planning = true;
  std::string reason;  // why there is none; may be empty
  std::vector<std::string> users, groups;
  std::map<std::string, int> max_gpus;  // as in PlanOverrides
};

// Throws InputError.
SitePolicy read_site_policy(const Field& field);

// Lowers the limits of a submission to those of the policy.
void apply(const SitePolicy& policy, const JobSpec& job, PlanOverrides& overrides);

}  // namespace sailor
