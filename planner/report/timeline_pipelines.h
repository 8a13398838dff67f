// What the pictures of an iteration share: which pipelines are alike and need to be shown once, how a stage
// is called, and text for XML. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/simulator/prediction.h"
#include "planner/simulator/timeline.h"

namespace sailor {

// Pipelines with the same stages, durations, memory and timeline, by first appearance. `timelines` is one per
// pipeline; empty: pipelines are told apart by plan and prediction only.
std::vector<std::vector<int>> alike_pipelines(const Plan& plan, const Prediction& prediction,
                                              const std::vector<Timeline>& timelines);
// "pipeline 0", "pipelines 0-3, 6"
std::string pipelines_name(const std::vector<int>& pipelines);

// Groups of GPUs of a pipeline: what a row of a picture is. Interleaved, each holds several entries of
// PlanPipeline::stages.
int num_gpu_groups(const Plan& plan, const PlanPipeline& pipeline);
// "6-11" ("2-3, 6-7" where interleaved).
std::string gpu_group_layers(const Plan& plan, const PlanPipeline& pipeline, int group);
// "stage 2: A x4, layers 6-11" ("layers 2-3, 6-7" where interleaved).
std::string gpu_group_name(const Plan& plan, const PlanPipeline& pipeline, int group);

// For element text and attribute values of XML and HTML.
std::string xml_escaped(const std::string& text);

}  // namespace sailor
