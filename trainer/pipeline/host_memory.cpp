#include "trainer/pipeline/host_memory.h"

#include <malloc.h>

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

int64_t peak_resident_bytes() {
  // Not getrusage(): its figure also covers the programs that this process was before exec.
  std::ifstream file("/proc/self/status");
  for (std::string key; file >> key;) {
    if (int64_t kib = 0; key == "VmHWM:" && file >> kib) return kib * 1024;
  }
  throw std::runtime_error("cannot read VmHWM from /proc/self/status");
}

}  // namespace sailor
