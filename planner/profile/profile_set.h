// Every profile that planning one job needs, looked up once: layer profiles of that model by GPU type, its
// sizes, the network. Immutable after loading; thread-safe for reading.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/profile/layer_profile.h"
#include "planner/profile/network_profile.h"
#include "planner/spec/catalog.h"
#include "planner/spec/framework_style.h"
#include "planner/spec/job_spec.h"

namespace sailor {

struct ProfileSet {
  std::map<std::string, LayerProfile> layers;  // by GPU type; a type without a profile and without an
                                               // estimate is absent and cannot be planned
  ModelSizes sizes;
  NetworkProfile network;
  std::map<std::string, std::string> estimates;  // what to tell a user of each type whose times are estimates
  std::vector<std::string> notes;                // e.g. "type X: no profile of this model in DIR"
  std::vector<std::string> files;                // that all of this is from, in the order of reading
};

// Searches `directories` for *.json profile files (product format) that match the job's model and precision.
// A catalog type with `emulate` gets the named type's profile, times multiplied by its slowdown. A type that
// was not measured, and of which the catalog says enough, gets an estimate of how it does what `framework`
// describes, and a note says so. Throws
// InputError when a file is broken, or when no type of the catalog has a profile (and says which command
// makes one).
ProfileSet load_profiles(const std::vector<std::string>& directories, const JobSpec& job,
                         const Catalog& catalog, const FrameworkStyle& framework = own_framework());

// The reference data pack's formats (its README): DIR/profiles/MODEL/TYPE/profile.json or profiles_tmp.json,
// llm_info.json, network/multizone_bandwidths_het.json. `times` chooses which copy of the times is read.
enum class ReferenceTimes { planner_copy, simulator_copy };
ProfileSet load_reference_profiles(const std::string& directory, const std::string& model,
                                   const std::vector<std::string>& gpu_types, ReferenceTimes times);

}  // namespace sailor
