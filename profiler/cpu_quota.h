// The processor time that this process may use: the quota of its cgroup (a container's, a systemd slice's).
// Under a quota the process runs at full speed for a while and then stops until the end of the period, so
// that short measurements see either none of it or all.
#pragma once

#include <limits>
#include <string>

namespace sailor {

struct CpuQuota {
  double processors = std::numeric_limits<double>::infinity();  // per period; infinity = no quota
  double period_s = 0;
};

// The tightest quota of this process's cgroup and those above it (cpu.max; cpu.cfs_quota_us in version 1).
// Unreadable files count as no quota. `proc` and `root` are for tests: the directory with the files `cgroup`
// and `mountinfo`, and the root of mount points.
CpuQuota cpu_quota(const std::string& proc = "/proc/self", const std::string& root = "");

}  // namespace sailor
