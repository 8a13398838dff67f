// When the sums of gradients end that start while the last backward still runs, layer by layer: what our own
// trainer does (trainer/parallel/gradient_sync.h). Pure.
//
// The backward of the last microbatch finishes a chunk's layers from the last down. A layer is summed once
// every replica has finished it, and a rank sums one layer after the other. What the ranks' own processors
// add up does not hide: they are busy with the backward.
#pragma once

#include <vector>

#include "planner/simulator/gradient_sync.h"

namespace sailor::native {

struct OverlappedSums {
  std::vector<std::vector<double>> end_s;  // by pipeline and group of GPUs: backward and sums done
  std::vector<double> of_group_s;          // by layer group: from its last replica's backward to its end
  std::vector<double> begin_s;             // by layer group: when its first sum begins
};

// What is known of a stage (or chunk), by pipeline.
struct LastBackward {
  double end_s = 0;              // of its last microbatch
  std::vector<double> layers_s;  // of that backward: each layer's part, in order
};

// `sums` are the times of each group's whole sum and `processor_s` the part of them that is the processors';
// `parameters` has one entry per layer of the model. `done_s` is when a group of GPUs has ended its last
// backward, by pipeline and group of GPUs.
OverlappedSums overlapped_sums(const Plan& plan, const std::vector<LayerGroup>& groups,
                               const std::vector<double>& sums_s, const std::vector<double>& processor_s,
                               const std::vector<double>& parameters,
                               const std::vector<std::vector<LastBackward>>& last_backwards,
                               const std::vector<std::vector<double>>& done_s);

}  // namespace sailor::native
