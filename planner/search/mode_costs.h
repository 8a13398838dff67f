// What stages in given modes cost at one microbatch size, as tables: the lower bounds that the skeleton
// search adds up. Exact for pure modes. Fills tables as it is asked, so one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/resource_limits.h"

namespace sailor {

// Who holds the layers of a stage in the other pipelines.
enum class Replicas {
  alike,  // GPUs of the stage's mode: many of them cannot all be in one zone
  any,    // whatever other pipelines are made of: all of them may be near
};

class ModeCosts {
 public:
  ModeCosts(const StageCosts& costs, const Resources& resources, std::vector<StageMode> modes,
            Replicas replicas = Replicas::alike);

  const StageCosts& stage() const { return costs_; }
  const Resources& resources() const { return resources_; }
  const std::vector<StageMode>& modes() const { return modes_; }
  int size() const { return static_cast<int>(modes_.size()); }

  double compute_s(int mode, int first, int end) const {
    return costs_.compute_s(modes_[mode].slowest(), first, end);
  }
  double update_s(int mode, int first, int end, int replicas) const {
    return costs_.update_s(modes_[mode].slowest(), first, end, replicas);
  }
  // The slowest pair of replicas over the boundary before `layer`, at least; infinite when no link is known.
  double activation_s(int upstream, int downstream, int layer) const {
    return activation_s_[message(upstream, downstream, layer)];
  }
  double gradient_s(int upstream, int downstream, int layer) const {
    return gradient_s_[message(upstream, downstream, layer)];
  }
  // A stage's cheapest message to any next, to any previous stage.
  double least_activation_s(int mode) const { return least_activation_s_[mode]; }
  double least_gradient_s(int mode) const { return least_gradient_s_[mode]; }
  double message_usd(int upstream, int downstream, int layer) {  // of one replica and microbatch
    if (message_usd_.empty()) message_usd_.assign(activation_s_.size(), -1);
    double& known = message_usd_[message(upstream, downstream, layer)];
    if (known < 0) known = least_message_usd(upstream, downstream, layer);
    return known;
  }
  // The slowest pair of neighbours in the ring, at least: replicas that no zone holds alone meet across
  // zones.
  double sync_s(int mode, int first, int end, int replicas) const;
  // The first mode whose stages sum gradients in the same time as this mode's.
  int sync_like(int mode) const { return sync_like_[mode]; }

  // The first layer of the longest stage that ends at `end` and fits a group's memory with `in_flight`
  // microbatches; `end` when not even one layer fits.
  int lowest_first(int group_option, int end, int in_flight, int replicas) {
    const std::vector<int16_t>& table = lowest_[group_option];
    const size_t layers = static_cast<size_t>(costs_.layers());
    const size_t kind = static_cast<size_t>(costs_.memory_replicas(replicas)) - 1;
    const size_t at = (kind * (layers + 1) + in_flight) * (layers + 1) + end;
    if (at < table.size() && table[at] >= 0) return table[at];
    return find_lowest_first(group_option, end, in_flight, replicas);
  }
  // Stages of one mode and end in which the same groups are fast enough: from layer `lowest` to `highest`.
  struct Segment {
    int lowest = 0, highest = 0;
    uint32_t groups = 0;
  };
  const std::vector<Segment>& segments(int mode, int end) const {
    return segments_[static_cast<size_t>(mode) * (costs_.layers() + 1) + end];
  }

  // Which groups of a mode may serve in a stage: bit g for groups[g]. 0 when the slowest does not fit
  // itself, or none of the smallest TP degree may. What fits without recomputing does not recompute.
  uint32_t allowed(int mode, int first, int end, int in_flight, int replicas);
  // What one replica uses of a limit and what it costs, at least, when these groups may serve.
  double least_weight(int mode, uint32_t groups, const ResourceLimit& limit) const;
  double least_usd_per_s(int mode, uint32_t groups) const;

 private:
  size_t message(int upstream, int downstream, int layer) const {
    return (static_cast<size_t>(upstream) * modes_.size() + downstream) * messages_ + message_of_[layer];
  }
  void tabulate_messages();
  double least_message_usd(int upstream, int downstream, int layer) const;
  uint32_t fast_enough(int mode, int first, int end) const;
  int find_lowest_first(int option, int end, int in_flight, int replicas);
  // Does a recomputing option fit without recomputing, too?
  bool needless(int option, int first, int end, int in_flight, int replicas) {
    const int plain = resources_.options[option].plain;
    return plain >= 0 && lowest_first(plain, end, in_flight, replicas) <= first;
  }
  int first_that_syncs_alike(int mode) const;
  std::vector<std::pair<int, int>> over_distinct_links(const std::vector<std::pair<int, int>>& pairs) const;
  int most_in_a_zone(const StageMode& mode) const;

  const StageCosts& costs_;
  const Resources& resources_;
  std::vector<StageMode> modes_;
  std::vector<size_t> message_of_;                             // by layer: boundaries of equal messages
  size_t messages_ = 0;                                        // kinds of them
  std::vector<double> activation_s_, gradient_s_;              // [upstream][downstream][kind of message]
  std::vector<double> message_usd_;                            // the same; negative = not asked yet
  std::vector<double> least_activation_s_, least_gradient_s_;  // by mode
  std::vector<uint32_t> fast_enough_;                          // [mode][end][first]
  std::vector<std::vector<Segment>> segments_;                 // [mode][end], ascending by length
  std::vector<std::vector<int>> facing_;                       // by mode: all its options
  std::vector<std::vector<int>> smallest_;                     // by mode: those of the smallest TP degree
  std::vector<std::vector<std::pair<int, int>>> neighbours_;  // by mode: pairs of options that sums may cross
  std::vector<std::vector<std::pair<int, int>>> across_zones_;  // by mode: pairs of options in two zones
  std::vector<int> most_in_a_zone_;                             // by mode: replicas
  std::vector<int> sync_like_;                                  // by mode
  std::vector<std::vector<int16_t>> lowest_;  // [option], [replicas][in_flight][end]; -1 = not asked yet
};

}  // namespace sailor
