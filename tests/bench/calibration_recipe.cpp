#include "tests/bench/calibration_recipe.h"

#include <cmath>

#include "planner/report/accuracy.h"
#include "planner/simulator/run_prediction.h"
#include "planner/spec/error.h"
#include "tests/bench/minimize.h"

namespace sailor::bench {
namespace {

// Pseudo-Huber: quadratic for small residuals, linear for large ones.
double softened(double residual) {
  return 2 * (std::sqrt(1 + residual * residual) - 1);
}

}  // namespace

CalibrationRecipe recipe_of(const std::string& set) {
  CalibrationRecipe recipe;
  recipe.rule = "every 11th run, from the 11th";
  if (set == "sailor") {
    recipe.rule = "every run that is scored";
    recipe.every = 1;
    recipe.offset = 0;
    recipe.with_memory = true;
    recipe.constants = {{"platforms.clariden.node_sync_s", 0.08, 0.7},
                        {"platforms.clariden.message_start_s", 0.3e-3, 0.7},
                        {"platforms.clariden.base_memory_bytes", 4e9, 0.7},
                        {"platforms.mit.message_slowdown", 1.1, 0.3},
                        {"platforms.mit.base_memory_bytes", 3e9, 0.7}};
  } else if (set == "vtrain-single") {
    recipe.constants = {{"gpu_types.A100-80.efficiency.gemm", 0.85, 0.15},
                        {"gpu_types.A100-80.efficiency.memory", 0.75, 0.15},
                        {"platforms.vtrain.host_block_s", 1e-3, 0.5},
                        {"platforms.vtrain.host_tp_rank_s", 50e-6, 0.7}};
  } else if (set == "vtrain-multi") {
    recipe.constants = {{"platforms.vtrain.jitter", 0.08, 0.7},
                        {"platforms.vtrain.links.network.node_bytes_per_s", 85e9, 0.15}};
  } else if (set == "ultrascale") {
    recipe.constants = {{"gpu_types.H100-80.efficiency.gemm", 0.55, 0.15},
                        {"gpu_types.H100-80.efficiency.memory", 0.75, 0.15},
                        {"platforms.p5.host_block_s", 1e-3, 0.7},
                        {"platforms.p5.host_tp_block_s", 1e-3, 0.7},
                        {"platforms.p5.host_pipelined_rank_s", 1.4e-3, 0.7},
                        {"platforms.p5.sync_slowdown", 2.5, 0.5}};
  } else if (set == "bigscience") {
    recipe.every = 2;
    recipe.offset = 1;
    recipe.rule = "every second run";
    recipe.constants = {{"gpu_types.A100-80.efficiency.gemm", 0.85, 0.15},
                        {"gpu_types.A100-80.efficiency.memory", 0.6, 0.15},
                        {"gpu_types.A100-80.efficiency.unaligned", 0.1, 1.0},
                        {"platforms.jean-zay.links.nvlink.latency_s", 60e-6, 0.7},
                        {"platforms.jean-zay.links.network.node_bytes_per_s", 40e9, 0.3}};
  } else if (set == "amp") {
    recipe.every = 2;
    recipe.offset = 1;
    recipe.rule = "every second run";
    recipe.constants = {{"gpu_types.T4-16.efficiency.gemm", 0.3, 0.15},
                        {"gpu_types.V100-16.efficiency.gemm", 0.45, 0.05},
                        {"platforms.amp-g4-p3.host_block_s", 3e-3, 0.5},
                        {"platforms.amp-g4-p3.links.g4.bytes_per_s", 4e9, 0.5}};
  } else if (set == "mosaic") {
    recipe.constants = {{"gpu_types.A100-40.efficiency.gemm", 0.75, 0.15},
                        {"gpu_types.A100-80.efficiency.gemm", 0.75, 0.15},
                        {"gpu_types.H100-80.efficiency.gemm", 0.55, 0.15},
                        {"gpu_types.A100-40.efficiency.attention", 0.5, 0.3},
                        {"gpu_types.A100-80.efficiency.attention", 0.5, 0.3},
                        {"gpu_types.H100-80.efficiency.attention", 0.6, 0.3}};
  } else {
    throw InputError("set \"" + set + "\" has nothing to calibrate");
  }
  return recipe;
}

Calibration calibrate(const std::string& set, const std::string& data, const CalibrationRecipe& recipe,
                      const std::vector<MeasuredRun>& records, const Assumptions& assumptions,
                      const std::function<Prediction(const MeasuredRun&, const Assumptions&)>& predict) {
  Calibration calibration;
  calibration.set = set;
  calibration.data = data;
  calibration.rule = recipe.rule;
  std::vector<const MeasuredRun*> rows;
  size_t index = 0;
  for (const MeasuredRun& record : records) {
    if (!record.ran || !(record.measured_s() || (recipe.with_memory && record.measured_bytes()))) continue;
    if (index++ % recipe.every != recipe.offset) continue;
    rows.push_back(&record);
    calibration.rows.push_back(record.name);
  }
  if (rows.empty()) throw InputError("too few runs to calibrate set \"" + set + "\"");
  Assumptions trial = assumptions;
  const auto value_of = [&](size_t i, double log_ratio) {
    return recipe.constants[i].expected * std::exp(log_ratio);
  };
  const auto set_all = [&](std::span<const double> at) {
    for (size_t i = 0; i < at.size(); ++i) set_constant(trial, recipe.constants[i].path, value_of(i, at[i]));
  };
  const auto loss = [&](std::span<const double> at) {
    constexpr double kUsualError = 0.05;
    set_all(at);
    double sum = 0;
    for (size_t i = 0; i < at.size(); ++i) sum += std::pow(at[i] / recipe.constants[i].width, 2);
    for (const MeasuredRun* row : rows) {
      const Prediction prediction = predict(*row, trial);
      if (const auto measured = row->measured_s())
        sum += softened(std::log(prediction.iteration_s / *measured) / kUsualError);
      if (const auto measured = row->measured_bytes(); measured && recipe.with_memory)
        sum += softened(std::log(static_cast<double>(predicted_peak_bytes(*row, prediction)) / *measured) /
                        kUsualError);
    }
    return sum;
  };
  std::vector<double> start(recipe.constants.size(), 0), step;
  for (const FreeConstant& constant : recipe.constants) step.push_back(constant.width / 2);
  const Minimum found = minimize(loss, start, step, 80 * static_cast<int>(recipe.constants.size()));
  set_all(found.at);
  std::vector<Pair> pairs;
  for (const MeasuredRun* row : rows)
    if (const auto measured = row->measured_s())
      pairs.push_back({predict(*row, trial).iteration_s, *measured});
  calibration.mean_error_pct = summarize(pairs).mean_pct;
  for (size_t i = 0; i < found.at.size(); ++i)
    calibration.constants[recipe.constants[i].path] = value_of(i, found.at[i]);
  return calibration;
}

}  // namespace sailor::bench
