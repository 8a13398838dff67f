// What the settings of Slurm mean for planned jobs, where that is not what a user expects. Pure.
#pragma once

#include <string>

#include "spank_plugin/doctor/finding.h"
#include "spank_plugin/slurm/installation.h"

namespace sailor {

// SchedulerType, SchedulerParameters and PrivateData of slurm.conf.
Findings check_scheduling(const SlurmSettings& settings);
// The text of cgroup.conf.
Findings check_cgroups(const std::string& cgroup_conf);

}  // namespace sailor
