// How much processor time this process may use: the quota of its control group (a container's, a systemd
// slice's). Under one the process runs at full speed for a while and then stands still until the period is
// over, so that short measurements see either nothing of it or all.
#pragma once

#include <limits>
#include <string>

namespace sailor {

struct CpuQuota {
  double processors = std::numeric_limits<double>::infinity();  // per period; infinity = no quota
  double period_s = 0;
};

// The tightest quota of this process's control group and those above it (cpu.max; cpu.cfs_quota_us of the
// first version). What cannot be read is no quota. `proc` and `root` are for tests: the folder with the files
// `cgroup` and `mountinfo`, and what mount points are looked for in.
CpuQuota cpu_quota(const std::string& proc = "/proc/self", const std::string& root = "");

}  // namespace sailor
