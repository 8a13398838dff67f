// What one replica of a stage is made of: its parallel dimensions, one member each. Whoever asks how many
// GPUs a replica takes, in how many parts it holds the weights, or whether two replicas are alike, asks here;
// only what is computed, sent or written along one dimension names that dimension. Value type.
//
// The GPUs of a replica are numbered with the tensor-parallel rank running fastest, then the context-parallel
// one. A further dimension is a member here, with its place in that order; what it costs (layer profiles,
// memory, messages); the communicators that the trainer makes for it; and its keys and columns (plan_json.h,
// reports).
#pragma once

#include <compare>
#include <string>

namespace sailor {

struct ReplicaShape {
  int tp = 1;  // tensor-parallel degree: every layer is split over that many GPUs
  // Context-parallel degree: that many groups of `tp` GPUs have the weights each, and the tokens of every
  // microbatch are split over them.
  int cp = 1;

  int gpus() const { return tp * cp; }
  // Equal parts that a layer's weights are cut into; GPU `gpu` of the replica holds part_of(gpu).
  int parts() const { return tp; }
  int part_of(int gpu) const { return gpu % tp; }
  // How many GPUs of the replica hold each part; GPU `gpu` has copy copy_of(gpu).
  int copies() const { return cp; }
  int copy_of(int gpu) const { return gpu / tp; }

  auto operator<=>(const ReplicaShape&) const = default;
};

// "4": its TP degree; "4x2": TP degree 4, CP degree 2.
inline std::string to_string(const ReplicaShape& shape) {
  return std::to_string(shape.tp) + (shape.cp > 1 ? "x" + std::to_string(shape.cp) : "");
}

// "a TP degree of 4", or "TP and CP degrees of 4 and 2".
inline std::string degrees_text(const ReplicaShape& shape) {
  if (shape.cp == 1) return "a TP degree of " + std::to_string(shape.tp);
  return "TP and CP degrees of " + std::to_string(shape.tp) + " and " + std::to_string(shape.cp);
}

}  // namespace sailor
