// The planner's inputs as files, from which the plan can be made again: planning/ in a run directory. With
// them `sailor report`, `explain` and `simulate` give the same answer about a run on any machine and at any
// time.
//
//     sailor.yaml      the site config, with prices; refers to the files next to it
//     catalog.yaml     profiles/      framework.yaml     calibrations/
//     cluster.yaml     the nodes of the search
//     options.yaml     the request: search space, cost model, limits of the submission
//
// Catalog and profiles are copies; only the profiles that were used. `--config planning/sailor.yaml` plans
// with them again.
#pragma once

#include <map>
#include <string>

#include "planner/inputs/load_inputs.h"
#include "planner/inputs/search_request.h"

namespace sailor {

// Contents by path below planning/.
using PlanningFiles = std::map<std::string, std::string>;

// Throws InputError when a file that was read for planning no longer exists.
PlanningFiles planning_files(const PlanningInputs& inputs, const SearchRequest& request);

// The request, from options.yaml.
struct PlanningOptions {
  SearchRequest request;
  PlanOverrides overrides;
};
PlanningOptions load_planning_options(const std::string& path);  // throws InputError

// Replaces DIRECTORY/planning, or removes it if there are no files. Readers see either the old or the new
// files. Throws std::runtime_error naming the path and the reason.
void write_planning(const std::string& directory, const PlanningFiles& files);
// DIRECTORY/planning if it is complete, else empty.
std::string planning_of(const std::string& directory);

// As one text, to send with a job.
std::string to_json(const PlanningFiles& files);
PlanningFiles parse_planning_files(const std::string& json, const std::string& source);  // throws InputError

}  // namespace sailor
