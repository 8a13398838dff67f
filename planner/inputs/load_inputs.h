// Loads and cross-checks all inputs for planning a job. This is the only path from files to a
// PlanningContext: the CLI, the plugin and the controller use it, so that a job means the same everywhere.
//
//     PlanningInputs inputs = load_inputs("job.yaml", site_config_path(), overrides,
//                                         [](const SiteConfig&) { return load_snapshot("snapshot.yaml"); });
//     SearchResult result = search(inputs.context(), options);
#pragma once

#include <functional>
#include <set>
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
  JobSpec job;  // with the overrides and the site's defaults applied
  // with the site's prices as defaults; without nodes of types that are not in the catalog
  Snapshot snapshot;
  ProfileSet profiles;
  std::vector<std::string> notes;  // for people, e.g. free GPUs that are unusable without a profile

  // Valid while this object lives and does not move.
  PlanningContext context() const { return context(snapshot); }
  // With other nodes than the snapshot's.
  PlanningContext context(const Snapshot& nodes) const { return {job, nodes, catalog, profiles, framework}; }
};

// The framework of the job's trainer. Of Sailor's own: the site's, else the built-in one, with ranks as the
// GPU types have them: if one of them computes on processors, all ranks communicate over sockets. Of another
// one: the site's if that describes it. Throws InputError.
FrameworkStyle framework_of(const JobSpec& job, const SiteConfig& site, const Catalog& catalog,
                            const std::set<std::string>& gpu_types);

using SnapshotSource = std::function<Snapshot(const SiteConfig&)>;

// Throws InputError when a file is broken, when the job names a GPU type that is not in the catalog or a zone
// that neither site nor snapshot has, or when no GPU type has a profile of the model. Exceptions of
// `snapshot` pass through.
PlanningInputs load_inputs(const std::string& job_file, const std::string& site_config_file,
                           const PlanOverrides& overrides, const SnapshotSource& snapshot);
// The same for a job spec that has already been read (from stdin, from a batch script). `plan_types`: GPU
// types of a given plan, which decide about the framework when there is no node.
PlanningInputs load_inputs(JobSpec job, const std::string& site_config_file, const PlanOverrides& overrides,
                           const SnapshotSource& snapshot, const std::set<std::string>& plan_types = {});
// The same for a site config that has already been read. For one without a file, a note says so.
PlanningInputs load_inputs(JobSpec job, SiteConfig site, const PlanOverrides& overrides,
                           const SnapshotSource& snapshot, const std::set<std::string>& plan_types = {});

}  // namespace sailor
