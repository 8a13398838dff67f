#include "profiler/cpu_quota.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace sailor {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words_of(const std::string& text, char separator) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, separator);) words.push_back(word);
  return words;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Where the control groups are mounted that rule processors, and which group the top of the mount shows.
struct Mount {
  bool unified = false;  // the second version
  std::string shown, point;
};

std::vector<Mount> mounts_of_cpu(const std::string& mountinfo) {
  std::vector<Mount> mounts;
  std::ifstream file(mountinfo);
  for (std::string line; std::getline(file, line);) {
    // 32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
    const std::vector<std::string> words = words_of(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 5 || words.end() - dash < 4) continue;
    const bool unified = dash[1] == "cgroup2";
    if (!unified && (dash[1] != "cgroup" || !contains(words_of(dash[3], ','), "cpu"))) continue;
    mounts.push_back({unified, words[3], words[4]});
  }
  return mounts;
}

// The group of this process: of the second version `0::PATH`, of the first `3:cpu,cpuacct:PATH`.
std::string group_of(const std::string& cgroup_file, bool unified) {
  std::ifstream file(cgroup_file);
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (unified ? controllers.empty() : contains(words_of(controllers, ','), "cpu"))
      return line.substr(second + 1);
  }
  return "";
}

CpuQuota quota_in(const fs::path& group, bool unified) {
  double quota_us = -1, period_us = 0;
  if (unified) {
    std::ifstream(group / "cpu.max") >> quota_us >> period_us;  // "max 100000" reads as no quota
  } else {
    std::ifstream(group / "cpu.cfs_quota_us") >> quota_us;
    std::ifstream(group / "cpu.cfs_period_us") >> period_us;
  }
  if (quota_us <= 0 || period_us <= 0) return {};
  return {quota_us / period_us, 1e-6 * period_us};
}

}  // namespace

CpuQuota cpu_quota(const std::string& proc, const std::string& root) {
  CpuQuota tightest;
  for (const Mount& mount : mounts_of_cpu(proc + "/mountinfo")) {
    std::string group = group_of(proc + "/cgroup", mount.unified);
    // A container sees its own group as the top of the mount.
    if (mount.shown != "/" && group.compare(0, mount.shown.size(), mount.shown) == 0)
      group.erase(0, mount.shown.size());
    const fs::path top = root + mount.point;
    for (fs::path here = fs::path(group).relative_path();; here = here.parent_path()) {
      const CpuQuota quota = quota_in(top / here, mount.unified);
      if (quota.processors < tightest.processors) tightest = quota;
      if (here.empty()) break;
    }
  }
  return tightest;
}

}  // namespace sailor
