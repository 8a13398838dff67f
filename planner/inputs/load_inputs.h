// Everything that planning one job needs, loaded and checked against each other. The one path from files to a
// PlanningContext: the CLI, the plugin and the controller all come through here, so that the same job means
// the same everywhere.
//
//     PlanningInputs inputs = load_inputs("job.yaml", site_config_path(), overrides,
//                                         [](const SiteConfig&) { return load_snapshot("snapshot.yaml"); });
//     SearchResult result = search(inputs.context(), options);
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/profile/profile_set.h"
#include "planner/simulator/simulate.h"
#include "planner/spec/catalog.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/overrides.h"
#include "planner/spec/site_config.h"
#include "planner/spec/snapshot.h"

namespace sailor {

struct PlanningInputs {
  SiteConfig site;
  Catalog catalog;
  FrameworkStyle framework;
  PlanOverrides overrides;
  JobSpec job;        // with the overrides and the site's defaults applied
  Snapshot snapshot;  // with the site's prices where it had none; nodes of types that the catalog does not
                      // know are left out
  ProfileSet profiles;
  std::vector<std::string> notes;  // for people, e.g. free GPUs that cannot be used for want of a profile

  // Valid while this object lives and stays where it is.
  PlanningContext context() const { return context(snapshot); }
  // On other nodes than the snapshot's.
  PlanningContext context(const Snapshot& nodes) const { return {job, nodes, catalog, profiles, framework}; }
};

// That the site names, else our own trainer's. Throws InputError.
FrameworkStyle framework_of(const SiteConfig& site);

using SnapshotSource = std::function<Snapshot(const SiteConfig&)>;

// Throws InputError when a file is broken, when the job names a GPU type that is not in the catalog or a zone
// that neither site nor snapshot has, or when no GPU type has a profile of the model. What `snapshot` throws
// passes through.
PlanningInputs load_inputs(const std::string& job_file, const std::string& site_config_file,
                           const PlanOverrides& overrides, const SnapshotSource& snapshot);
// The same for a job spec that has been read already (from stdin, from a batch script).
PlanningInputs load_inputs(JobSpec job, const std::string& site_config_file, const PlanOverrides& overrides,
                           const SnapshotSource& snapshot);
// The same for a site that has been read already. One without a file is nobody's: a note says so.
PlanningInputs load_inputs(JobSpec job, SiteConfig site, const PlanOverrides& overrides,
                           const SnapshotSource& snapshot);

}  // namespace sailor
