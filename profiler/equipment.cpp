#include "profiler/equipment.h"

#include <fmt/format.h>
#include <torch/version.h>
#include <unistd.h>

#include <array>
#include <ctime>

#include "planner/spec/text_file.h"
#include "profiler/cpu_quota.h"

namespace sailor {
namespace {

std::string processor_name() {
  std::string line;
  for (const std::string& text = read_text_file("/proc/cpuinfo"); const char c : text) {
    if (c != '\n') {
      line += c;
    } else if (line.starts_with("model name")) {
      return line.substr(line.find(':') + 2);
    } else {
      line.clear();
    }
  }
  return "";
}

}  // namespace

MeasuredWith this_equipment(int ranks) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  MeasuredWith measured;
  measured.at = utc_time(std::time(nullptr));
  measured.host = host.data();
  measured.device = processor_name();
  if (const CpuQuota quota = cpu_quota(); quota.processors < ranks)
    measured.device += fmt::format(" with {:.2f} processors' time", quota.processors);
  measured.libraries =
      fmt::format("libtorch {}.{}.{}", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH);
  measured.ranks = ranks;
  return measured;
}

}  // namespace sailor
