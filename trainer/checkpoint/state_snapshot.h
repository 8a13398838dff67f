// What one rank writes of the state of training after a step, copied out of the tensors that training goes on
// with. It takes as much memory as the rank's share of the checkpoint, which is kept for the next one. One
// thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/shard_writer.h"
#include "trainer/checkpoint/training_state.h"

namespace sailor {

class StateSnapshot {
 public:
  // Replaces what was here. Copies with as many threads as libtorch computes with.
  void take(const RankState& state, int64_t steps_done);

  int64_t steps_done() const { return steps_done_; }
  int64_t optimizer_steps() const { return optimizer_steps_; }
  // Names of the optimizer's states that a checkpoint has beside the values.
  const std::vector<std::string>& optimizer_states() const { return optimizer_states_; }
  const std::vector<ShardPiece>& pieces() const { return pieces_; }  // point into the copy

 private:
  int64_t steps_done_ = 0, optimizer_steps_ = 0;
  std::vector<std::string> optimizer_states_;
  std::vector<ShardPiece> pieces_;
  std::unique_ptr<char[]> bytes_;
  int64_t capacity_ = 0;
};

}  // namespace sailor
