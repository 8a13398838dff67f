// Who may plan under the site's policy. Pure except for this_user().
#pragma once

#include <sys/types.h>

#include <set>
#include <string>

#include "planner/plan/plan.h"
#include "planner/spec/site_policy.h"

namespace sailor {

struct User {
  uid_t id = 0;
  std::string name;
  std::set<std::string> groups;
};
// Of this process. Groups without a name are left out.
User this_user();

// Why the user's submission is not planned; empty if it may be.
std::string reason_not_to_plan(const SitePolicy& policy, const User& user);
// Why a given plan is not submitted: more GPUs than the policy allows. Empty if it may be.
std::string reason_not_to_use(const SitePolicy& policy, const Plan& plan);

}  // namespace sailor
