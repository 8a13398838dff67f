// A hook after the phases of an iteration, with which an emulated device makes computation take the time of
// another device. The default does nothing.
#pragma once

#include <chrono>
#include <cstdint>

#include "planner/spec/recompute.h"
#include "planner/spec/replica_shape.h"
#include "trainer/comm/communicator.h"

namespace sailor {

enum class Phase { forward, backward, weights, update };

// A computation: `sequences` sequences (0 for update) through layers [first_layer, end_layer) by a replica.
// `recompute`: what the backward computed again, of blocks from the layer `first_block` on.
// `split`: it was the first part of a split backward, of which `weights` is the second. An update covers one
// of `update_parts` parts; other ranks do the others (ZeRO-1).
struct PhaseWork {
  Phase phase = Phase::forward;
  int pipeline = 0;
  int stage = 0;
  int first_layer = 0;
  int end_layer = 0;
  ReplicaShape shape;
  int sequences = 0;
  StageRecompute recompute{};
  int first_block = 1;
  bool split = false;
  int update_parts = 1;
  // Between the device and the host's memory, each way: all of an update, the input of a block of a backward.
  int64_t offloaded_bytes = 0;
  double waited_s = 0;  // for other replicas, while it was under way (ZeRO-2, ZeRO-3)
};

class Pacer {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~Pacer() = default;

  // The rank's TP and CP groups, set before any other call; nullptr = none. They outlive the calls below.
  virtual void joins(Communicator* tp, Communicator* cp) {
    (void)tp;
    (void)cp;
  }

  // Called by the rank's thread when it has computed `work` (with TP collectives, without messages between
  // stages and gradient sync), which began at `start`. Returns when the emulated device would be done.
  virtual void computed(const PhaseWork& work, Clock::time_point start) {
    (void)work;
    (void)start;
  }
  // The same for the layers that a phase computes first, a part of those of the later call of computed():
  // returns when the emulated device would be done with them. Not counted.
  virtual void part_computed(const PhaseWork& part, Clock::time_point start) {
    (void)part;
    (void)start;
  }
  // Called at the start of each iteration, and at its end after the update.
  virtual void iteration_begins() {}
  virtual void iteration_ends(Clock::time_point start) { (void)start; }
};

}  // namespace sailor
