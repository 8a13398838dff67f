#include "trainer/comm/host_memory.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>

namespace sailor {

void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  // The heap grows by this much at a time, not by 128 KiB.
  mallopt(M_TOP_PAD, 4 << 20);
}

namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// The number in a file; `otherwise` where there is none, or a word such as `max`.
int64_t number_in(const std::string& path, int64_t otherwise) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? number : otherwise;
}

// What the limits of a control group and of those above it leave. `root` is where their tree is mounted.
int64_t left_in_groups(const std::string& root, std::string group, const char* limit, const char* used) {
  int64_t left = kNoLimit;
  for (;; group.resize(group.find_last_of('/'))) {
    const std::string folder = root + group + "/";
    const int64_t most = number_in(folder + limit, kNoLimit);
    if (most < kNoLimit) left = std::min(left, std::max<int64_t>(0, most - number_in(folder + used, 0)));
    if (group.find('/') == std::string::npos) return left;
  }
}

}  // namespace

int64_t available_host_bytes() {
  int64_t left = 0;
  std::ifstream memory("/proc/meminfo");
  for (std::string key; memory >> key;) {
    if (int64_t kib = 0; key == "MemAvailable:" && memory >> kib) left = kib * 1024;
  }
  std::ifstream groups("/proc/self/cgroup");  // lines of NUMBER:CONTROLLERS:PATH
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      path = line.substr(second + 1);
    if (controllers.empty())
      left = std::min(left, left_in_groups("/sys/fs/cgroup", path, "memory.max", "memory.current"));
    if (controllers == "memory")
      left = std::min(left, left_in_groups("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes",
                                           "memory.usage_in_bytes"));
  }
  return left;
}

int64_t peak_resident_bytes() {
  // Not getrusage(): its figure also covers the programs that this process was before exec.
  std::ifstream file("/proc/self/status");
  for (std::string key; file >> key;) {
    if (int64_t kib = 0; key == "VmHWM:" && file >> kib) return kib * 1024;
  }
  throw std::runtime_error("cannot read VmHWM from /proc/self/status");
}

}  // namespace sailor
