#include "spank_plugin/slurm/plan_environment.h"

#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>

#include "planner/plan/packed_plan.h"

namespace sailor {
namespace {

// Below the kernel's 128 KiB per environment string, and in total below the 1 MB that Slurm was seen to
// carry.
constexpr size_t kMaxChunkBytes = size_t{112} << 10;
constexpr size_t kMaxTotalBytes = 1'000'000;

std::string chunk_name(size_t index) {
  return fmt::format("SAILOR_PLAN_{}", index);
}

}  // namespace

EnvironmentVariables plan_environment(const Plan& plan) {
  std::string packed = pack_plan(plan);
  if (packed.size() > kMaxTotalBytes) {
    throw std::runtime_error(
        fmt::format("the plan of {} ranks is too large to travel with the job ({} bytes, at most {})",
                    num_ranks(plan), packed.size(), kMaxTotalBytes));
  }
  EnvironmentVariables variables;
  for (size_t begin = 0; begin < packed.size(); begin += kMaxChunkBytes) {
    variables.emplace_back(chunk_name(variables.size()), packed.substr(begin, kMaxChunkBytes));
  }
  return variables;
}

std::optional<std::string> job_variable(const std::string& name) {
  const char* value = getenv(("SLURM_SPANK_" + name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

std::optional<Plan> plan_from_environment() {
  std::string packed;
  for (size_t index = 0; std::optional<std::string> chunk = job_variable(chunk_name(index)); ++index)
    packed += *chunk;
  if (packed.empty()) return std::nullopt;
  return unpack_plan(packed, "SLURM_SPANK_SAILOR_PLAN_0");
}

}  // namespace sailor
