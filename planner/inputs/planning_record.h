// What a plan was made with, as files that it can be made with again: in a run's directory they are
// planning/, so that `sailor report`, `explain` and `simulate` say of a run what they would have said when it
// was planned, wherever they are started.
//
//     sailor.yaml      the site config, prices included; what it names is beside it
//     catalog.yaml     profiles/      framework.yaml
//     cluster.yaml     the nodes that there were
//     options.yaml     what was asked: search space, cost model, limits of the submission
//
// Catalog and profiles are copies, of the profiles those that were used. `--config planning/sailor.yaml`
// plans with them again.
#pragma once

#include <map>
#include <string>

#include "planner/inputs/load_inputs.h"
#include "planner/inputs/search_request.h"

namespace sailor {

// Contents by path below planning/.
using PlanningFiles = std::map<std::string, std::string>;

// Throws InputError when a file that was read for planning is gone.
PlanningFiles planning_files(const PlanningInputs& inputs, const SearchRequest& request);

// What was asked, from options.yaml.
struct PlanningOptions {
  SearchRequest request;
  PlanOverrides overrides;
};
PlanningOptions load_planning_options(const std::string& path);  // throws InputError

// Replaces DIRECTORY/planning, or removes it where there are no files: readers see the old files or the new
// ones, never some of each. Throws std::runtime_error naming the path and the reason.
void write_planning(const std::string& directory, const PlanningFiles& files);
// DIRECTORY/planning when it is there and whole, else empty.
std::string planning_of(const std::string& directory);

// As one text, to travel with a job.
std::string to_json(const PlanningFiles& files);
PlanningFiles parse_planning_files(const std::string& json, const std::string& source);  // throws InputError

}  // namespace sailor
