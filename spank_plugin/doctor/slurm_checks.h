// What the settings of Slurm mean for planned jobs, where that is not what a user expects. Pure.
#pragma once

#include <string>

#include "spank_plugin/doctor/finding.h"
#include "spank_plugin/slurm/installation.h"

namespace sailor {

// SchedulerType, SchedulerParameters and PrivateData of slurm.conf.
Findings check_scheduling(const SlurmSettings& settings);
// The text of cgroup.conf. `umbrella`: planned jobs over several partitions are ordinary jobs of one.
Findings check_cgroups(const std::string& cgroup_conf, bool umbrella);

}  // namespace sailor
