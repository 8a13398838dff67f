#include "planner/simulator/calibrate.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "planner/simulator/minimize.h"
#include "planner/simulator/run_prediction.h"

namespace sailor {
namespace {

constexpr double kUsualError = 0.05;

// Pseudo-Huber: quadratic for small residuals, linear for large ones.
double softened(double residual) {
  return 2 * (std::sqrt(1 + residual * residual) - 1);
}

double deviation(double predicted, double measured) {
  return softened(std::log(predicted / measured) / kUsualError);
}

// What the plans of some runs have.
struct Seen {
  std::set<std::string> gpu_types;
  bool tensor_parallel = false, several_nodes = false, sums_between_nodes = false;
};

Seen look_at(const std::vector<MeasuredRun>& runs) {
  Seen seen;
  for (const MeasuredRun& run : runs) {
    if (!run.ran) continue;
    std::set<std::string> nodes;
    for (const PlanPipeline& pipeline : run.plan.pipelines)
      for (const PlanStage& stage : pipeline.stages) {
        seen.gpu_types.insert(stage.gpu_type);
        seen.tensor_parallel |= stage.shape.tp > 1;
        nodes.insert(stage.node);
      }
    seen.several_nodes |= nodes.size() > 1;
    seen.sums_between_nodes |= nodes.size() > 1 && run.plan.pipelines.size() > 1;
  }
  return seen;
}

}  // namespace

std::vector<FreeConstant> free_constants(const std::vector<MeasuredRun>& runs,
                                         const FrameworkStyle& framework, const Assumptions& assumptions,
                                         bool memory) {
  const Seen seen = look_at(runs);
  std::vector<FreeConstant> constants;
  for (const std::string& type : seen.gpu_types) {
    const GpuEfficiency& now = assumptions.catalog.at(type).efficiency;
    const std::string path = "gpu_types." + type + ".efficiency.";
    constants.push_back({path + "gemm", now.gemm, 0.25, 1});
    constants.push_back({path + "memory", now.memory, 0.15, 1});
    if (framework.attention == FrameworkStyle::Attention::fused)
      constants.push_back({path + "attention", now.attention, 0.3, 1});
  }
  const std::string path = "frameworks." + framework.name + ".";
  const auto add = [&](const char* key, double now, double usual, double width, double most) {
    constants.push_back({path + key, now > 0 ? now : usual, width, most});
  };
  add("host_block_s", framework.host_block_s, 0.8e-3, 0.7, 60);
  if (seen.tensor_parallel) {
    add("host_tp_block_s", framework.host_tp_block_s, 0.2e-3, 0.7, 60);
    add("host_tp_rank_s", framework.host_tp_rank_s, 40e-6, 0.7, 60);
  }
  if (seen.several_nodes) add("jitter", framework.jitter, 0.05, 0.7, 10);
  if (seen.sums_between_nodes) {
    add("sync_slowdown", framework.sync_slowdown, 1, 0.5, 1000);
    if (framework.gradient_sync == FrameworkStyle::Sync::overlapped)
      add("overlap", framework.overlap, 0.8, 0.3, 1);
  }
  if (memory) add("base_memory_bytes", framework.base_memory_bytes, 1e9, 0.7, 1e15);
  return constants;
}

std::map<std::string, double> fit_constants(const std::vector<MeasuredRun>& runs,
                                            const std::vector<FreeConstant>& constants,
                                            const Assumptions& assumptions, const PredictRun& predict,
                                            bool with_memory) {
  Assumptions trial = assumptions;
  const auto value_of = [&](size_t i, double log_ratio) {
    return std::min(constants[i].most, constants[i].expected * std::exp(log_ratio));
  };
  const auto loss = [&](std::span<const double> at) {
    double sum = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      set_constant(trial, constants[i].path, value_of(i, at[i]));
      sum += std::pow(at[i] / constants[i].width, 2);
    }
    for (const MeasuredRun& run : runs) {
      const auto seconds = run.measured_s();
      const auto bytes = with_memory ? run.measured_bytes() : std::nullopt;
      if (!run.ran || (!seconds && !bytes)) continue;
      const Prediction prediction = predict(run, trial);
      if (seconds) sum += deviation(prediction.iteration_s, *seconds);
      if (bytes) sum += deviation(static_cast<double>(predicted_peak_bytes(run, prediction)), *bytes);
    }
    return sum;
  };
  std::vector<double> start(constants.size(), 0), step;
  for (const FreeConstant& constant : constants) step.push_back(constant.width / 2);
  const Minimum found = minimize(loss, start, step, 80 * static_cast<int>(constants.size()));
  std::map<std::string, double> values;
  for (size_t i = 0; i < constants.size(); ++i) values[constants[i].path] = value_of(i, found.at[i]);
  return values;
}

}  // namespace sailor
