#include "planner/report/memory_table.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "planner/report/timeline_pipelines.h"

namespace sailor {
namespace {

constexpr MemorySource kSources[] = {
    {"weights", "WEIGHTS", &MemoryBreakdown::weights_bytes},
    {"gradients", "GRADS", &MemoryBreakdown::gradients_bytes},
    {"optimizer", "OPTIM", &MemoryBreakdown::optimizer_bytes},
    {"master", "MASTER", &MemoryBreakdown::master_bytes},
    {"activations", "ACTIV", &MemoryBreakdown::activations_bytes},
    {"workspace", "WORKSP", &MemoryBreakdown::workspace_bytes},
    {"communication", "COMM", &MemoryBreakdown::communication_bytes},
    {"base", "BASE", &MemoryBreakdown::base_bytes},
    {"fragmentation", "FRAGM", &MemoryBreakdown::fragmentation_bytes},
};

// "0-3,6"
std::string numbers_of(const std::vector<int>& pipelines) {
  const std::string name = pipelines_name(pipelines);
  std::string numbers = name.substr(name.find(' ') + 1);
  std::erase(numbers, ' ');
  return numbers.size() > 7 ? numbers.substr(0, 5) + ".." : numbers;
}

}  // namespace

std::span<const MemorySource> memory_sources() {
  return kSources;
}

std::string MemoryUnit::text(int64_t amount) const {
  return fmt::format("{:.2f}", static_cast<double>(amount) / bytes);
}

MemoryUnit memory_unit(const Prediction& prediction) {
  constexpr int64_t kGiB = 1 << 30, kMiB = 1 << 20;
  if (prediction.peak_memory_bytes() < kGiB) return {"MiB", kMiB};
  return {"GiB", kGiB};
}

std::string memory_table(const Plan& plan, const Prediction& prediction) {
  const MemoryUnit unit = memory_unit(prediction);
  std::string out = fmt::format("{:<7} {:<5}", "PIPE", "STAGE");
  for (const MemorySource& source : kSources) out += fmt::format("{:>9}", source.heading);
  out += fmt::format("{:>9}{:>7}\n", "TOTAL", "USED");
  const std::vector<size_t> base = pipeline_bases(plan);
  for (const std::vector<int>& pipelines : alike_pipelines(plan, prediction, {})) {
    const auto first = static_cast<size_t>(pipelines[0]);
    const auto groups = static_cast<size_t>(num_gpu_groups(plan, plan.pipelines[first]));
    for (size_t i = 0; i < groups; ++i) {
      const StagePrediction& stage = prediction.stages.at(base[first] + i);
      out += fmt::format("{:<7} {:<5}", numbers_of(pipelines), i);
      for (const MemorySource& source : kSources)
        out += fmt::format("{:>9}", unit.text(stage.memory.*source.bytes));
      const int64_t total = stage.memory.total();
      out += fmt::format("{:>9}", (stage.estimated ? "~" : "") + unit.text(total));
      out += stage.capacity_bytes > 0
                 ? fmt::format("{:>6.1f}%\n",
                               100 * static_cast<double>(total) / static_cast<double>(stage.capacity_bytes))
                 : fmt::format("{:>7}\n", "-");
    }
  }
  return out + fmt::format("{} per GPU; USED is the part of its memory\n", unit.name);
}

}  // namespace sailor
