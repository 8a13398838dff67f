// What one replica of a stage is made of: its parallel dimensions, one member each. Whoever asks how many
// GPUs a replica takes, in how many parts it holds the weights, or whether two replicas are alike, asks here;
// only what is computed, sent or written along one dimension names that dimension. Value type.
//
// The GPUs of a replica are numbered with the tensor-parallel rank running fastest. A further dimension is a
// member here, with its place in that order; what it costs (layer profiles, memory, messages); the
// communicators that the trainer makes for it; and its keys and columns (plan_json.h, reports).
#pragma once

#include <compare>

namespace sailor {

struct ReplicaShape {
  int tp = 1;  // tensor-parallel degree: every layer is split over that many GPUs

  int gpus() const { return tp; }
  // Equal parts that a layer's weights are cut into; GPU `gpu` of the replica holds part_of(gpu).
  int parts() const { return tp; }
  int part_of(int gpu) const { return gpu % tp; }

  auto operator<=>(const ReplicaShape&) const = default;
};

}  // namespace sailor
