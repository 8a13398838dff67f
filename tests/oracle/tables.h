// Lookup tables of enumerate.cpp: times, memory and bytes of every range of layers, messages between every
// two ways of using GPUs, gradient reduction between every two pools. Built once per problem and microbatch
// size; not thread-safe (reductions are computed on demand).
#pragma once

#include <limits>
#include <vector>

#include "tests/oracle/problem.h"

namespace sailor::oracle {

constexpr double kNever = std::numeric_limits<double>::infinity();

// GPUs of one type in one zone.
struct PoolOfGpus {
  int type = 0, zone = 0, region = 0;
  std::vector<int> free_by_node;
};

// One way to run one replica of a stage.
struct Way {
  int pool = 0;
  int tp = 1;
  int degree = 0;  // index of tp among the degrees
  double usd_per_s = 0;
};

class Pools {
 public:
  explicit Pools(const Problem& problem);

  const std::vector<PoolOfGpus>& list() const { return list_; }
  const std::vector<int>& degrees() const { return degrees_; }
  // Do these numbers of groups by degree fit the pool's nodes?
  bool fits(int pool, const std::vector<int>& groups) const;
  // 2 (D - 1) p2p sums of the parameters of layers [first, end) over `shard` GPUs, between neighbours.
  double sync_s(int first, int end, int replicas, int shard, int from, int to);
  double stage_bytes(int first, int end) const { return bytes_[end] - bytes_[first]; }

 private:
  const Problem& problem_;
  std::vector<PoolOfGpus> list_;
  std::vector<int> degrees_;
  std::vector<std::vector<bool>> fits_;  // by pool, then number of groups as digits of a number
  std::vector<double> bytes_;            // of the parameters of the layers before
  std::vector<double> sync_;             // negative: not yet computed
  int most_gpus_ = 0;
};

class Ways {
 public:
  Ways(const Problem& problem, const Pools& pools, int microbatch);

  int size() const { return static_cast<int>(list_.size()); }
  const Way& at(int way) const { return list_[way]; }
  // Infinite if the layers do not fit with this many microbatches in flight.
  double compute_s(int way, int first, int end, int in_flight) const;
  double update_s(int way, int first) const { return update_[way][first]; }
  // The output of `layer` from one way to another.
  double message_s(int layer, int from, int to) const {
    return message_s_[(layer * size() + from) * size() + to];
  }
  double message_bytes(int layer, int from) const { return message_bytes_[layer][from]; }

 private:
  const Problem& problem_;
  int microbatch_;
  std::vector<Way> list_;
  std::vector<std::vector<double>> compute_;  // [way][first * (layers + 1) + end]
  std::vector<std::vector<double>> update_;
  std::vector<double> message_s_;
  std::vector<std::vector<double>> message_bytes_;
  std::vector<double> capacity_;
};

}  // namespace sailor::oracle
