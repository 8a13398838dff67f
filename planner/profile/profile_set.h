// All profiles for planning one job: layer profiles of its model by GPU type, its sizes, the network.
// Immutable after loading; thread-safe for reading.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "planner/profile/layer_profile.h"
#include "planner/profile/network_profile.h"
#include "planner/spec/catalog.h"
#include "planner/spec/error.h"
#include "planner/spec/framework_style.h"
#include "planner/spec/job_spec.h"

namespace sailor {

struct ProfileSet {
  // by GPU type; without types that have neither a profile nor an estimate
  std::map<std::string, LayerProfile> layers;
  ModelSizes sizes;
  NetworkProfile network;               // of the framework's transport
  bool measured_otherwise = false;      // the files have links that were measured over another transport
  std::vector<std::string> notes;       // e.g. "type X: no profile of this model in DIR"
  std::vector<std::string> not_used{};  // why files of other users are left out, a line each
  std::vector<std::string> files;       // the files that were read, in order
  // The same in the job's fallback precision, where it has one. Then GPU types that lack the job's first
  // precision have no layers above. Its files are among those above.
  std::shared_ptr<ProfileSet> fallback{};

  // The layers of a type in the first precision that it has; nullptr if no plan of the job can use it.
  const LayerProfile* find(const std::string& gpu_type) const {
    const auto it = layers.find(gpu_type);
    if (it != layers.end()) return &it->second;
    return fallback ? fallback->find(gpu_type) : nullptr;
  }
  bool usable(const std::string& gpu_type) const { return find(gpu_type) != nullptr; }
};

// Searches `directories` for *.json profile files (product format) that match the job's model and precision.
// A catalog type with `emulate` gets the named type's profile, with times multiplied by its slowdown. If the
// catalog has enough data of a type, it also gets estimates for `framework`: of what its profile lacks
// (completed_profile.h), or of everything if it has none (estimates_note()).
// A broken file of another user, or one that everybody can write, is left out (not_used).
// Throws InputError when a file of this user is broken, or when no type of the catalog has a profile (naming
// the command that makes one).
ProfileSet load_profiles(const std::vector<std::string>& directories, const JobSpec& job,
                         const Catalog& catalog, const FrameworkStyle& framework = own_framework());

// The links of the profiles in `directories`, completed with those that the catalog assumes. Throws as above.
NetworkProfile load_links(const std::vector<std::string>& directories, const Catalog& catalog,
                          Transport transport);

// No GPU type that could be used has a profile or an estimate.
InputError no_profile(const std::vector<std::string>& directories, const JobSpec& job,
                      const Catalog& catalog);

// One line for the user about those of `gpu_types` without any measured time; empty if there are none.
std::string estimates_note(const ProfileSet& profiles, const JobSpec& job,
                           const std::set<std::string>& gpu_types);

// The formats of the reference data pack (see its README): DIR/profiles/MODEL/TYPE/profile.json or
// profiles_tmp.json, llm_info.json, network/multizone_bandwidths_het.json. `times` selects which copy of the
// times is read.
enum class ReferenceTimes { planner_copy, simulator_copy };
ProfileSet load_reference_profiles(const std::string& directory, const std::string& model,
                                   const std::vector<std::string>& gpu_types, ReferenceTimes times);

}  // namespace sailor
