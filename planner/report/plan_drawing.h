// A plan as a drawing: a row of boxes per kind of pipeline, a box per stage with its GPUs. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/simulator/prediction.h"

namespace sailor {

// A stage, or consecutive stages that differ only in their layers.
struct DrawnStage {
  std::string name;  // "stage 2", "stages 2-13"
  std::string gpu_type;
  std::string gpus;        // "A x4"
  std::string layers;      // "layers 6-11", "2 layers each"
  std::string zone;        // or "3 zones"; empty: unknown
  std::string recompute;   // "recomputes"; empty: it keeps its activations
  double memory_part = 0;  // utilization of the fullest of them
  double busy_part = 0;    // of the busiest of them
};

struct DrawnPipeline {
  std::string name;    // "pipelines 0-3, 6"
  std::string work;    // "13 microbatches each"
  int microbatch = 0;  // sequences of each
  std::vector<DrawnStage> stages;
};

// Pipelines with the same stages and microbatches are drawn once, in the order of first appearance.
std::vector<DrawnPipeline> drawn_pipelines(const Plan& plan, const Prediction& prediction);

// Plain ASCII, at most 100 columns wide and eight kinds of pipelines high; the last line counts the rest.
std::string plan_drawing(const Plan& plan, const Prediction& prediction);

}  // namespace sailor
