#include "tests/bench/calibration_recipe.h"

#include "planner/report/accuracy.h"
#include "planner/spec/error.h"

namespace sailor::bench {
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
                      const PredictRun& predict) {
  Calibration calibration;
  calibration.set = set;
  calibration.data = data;
  calibration.rule = recipe.rule;
  std::vector<MeasuredRun> rows;
  size_t index = 0;
  for (const MeasuredRun& record : records) {
    if (!record.ran || !(record.measured_s() || (recipe.with_memory && record.measured_bytes()))) continue;
    if (index++ % recipe.every != recipe.offset) continue;
    rows.push_back(record);
    calibration.rows.push_back(record.name);
  }
  if (rows.empty()) throw InputError("too few runs to calibrate set \"" + set + "\"");
  calibration.constants = fit_constants(rows, recipe.constants, assumptions, predict, recipe.with_memory);
  Assumptions fitted = assumptions;
  apply(calibration, fitted);
  std::vector<Pair> pairs;
  for (const MeasuredRun& row : rows)
    if (const auto measured = row.measured_s())
      pairs.push_back({predict(row, fitted).iteration_s, *measured});
  calibration.mean_error_pct = summarize(pairs).mean_pct;
  return calibration;
}

}  // namespace sailor::bench
