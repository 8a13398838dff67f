// Shared by the pictures of an iteration: groups of equal pipelines, which are shown once; names of stages;
// text for XML. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/simulator/prediction.h"
#include "planner/simulator/timeline.h"

namespace sailor {

// Pipelines with the same stages, durations, memory and timeline, by first appearance. `timelines` is one per
// pipeline; empty: pipelines are compared by plan and prediction only.
std::vector<std::vector<int>> alike_pipelines(const Plan& plan, const Prediction& prediction,
                                              const std::vector<Timeline>& timelines);
// Index of each pipeline's first entry in Prediction::stages.
std::vector<size_t> pipeline_bases(const Plan& plan);
// "pipeline 0", "pipelines 0-3, 6"
std::string pipelines_name(const std::vector<int>& pipelines);

// GPU groups of a pipeline, which are the rows of a picture. If interleaved, each has several entries of
// PlanPipeline::stages.
int num_gpu_groups(const Plan& plan, const PlanPipeline& pipeline);
// "6-11" ("2-3, 6-7" where interleaved).
std::string gpu_group_layers(const Plan& plan, const PlanPipeline& pipeline, int group);
// "stage 2: A x4, layers 6-11" ("layers 2-3, 6-7" where interleaved).
std::string gpu_group_name(const Plan& plan, const PlanPipeline& pipeline, int group);

// For element text and attribute values of XML and HTML.
std::string xml_escaped(const std::string& text);

}  // namespace sailor
