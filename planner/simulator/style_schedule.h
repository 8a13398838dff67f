// The schedule of a plan's pipelines under a framework's style. Pure.
#pragma once

#include <vector>

#include "planner/simulator/schedule.h"
#include "planner/spec/framework_style.h"

namespace sailor::native {

// Microbatches in flight of each chunk of a group of GPUs.
std::vector<int> chunks_in_flight(const PipelineSchedule& schedule, int group, int groups, int microbatches);

// The schedule of pipelines with this many chunks per GPU group under a framework's style, whose ranks send
// messages of at most `message_bytes` between stages.
PipelineSchedule schedule_of(const FrameworkStyle& style, int interleave, double message_bytes);

}  // namespace sailor::native
