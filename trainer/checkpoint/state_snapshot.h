// What one rank writes of the state of training after a step, copied out of the tensors that training goes on
// with; or a copy of what another rank has copied so. It takes as much memory as the rank's share of the
// checkpoint, which is kept for the next one. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/shard_writer.h"
#include "trainer/checkpoint/state_version.h"
#include "trainer/checkpoint/training_state.h"

namespace sailor {

class StateSnapshot {
 public:
  // Replaces what was here. Copies with as many threads as libtorch computes with. From a device the copy is
  // only enqueued, on its stream for copies behind what has been computed: what overwrites the state has to
  // wait for that stream, and whoever reads the copy for wait(), from any thread.
  void take(const RankState& state, const StateVersion& version);
  void wait();

  // False while nothing was put here, and while something is.
  bool whole() const { return whole_; }
  const StateVersion& version() const { return version_; }
  int64_t optimizer_steps() const { return optimizer_steps_; }
  // Names of the optimizer's states that a checkpoint has beside the values.
  const std::vector<std::string>& optimizer_states() const { return optimizer_states_; }
  const std::vector<ShardPiece>& pieces() const { return pieces_; }  // point into the copy

  // For a copy elsewhere: what it is made of, and all its bytes.
  std::string description() const;
  const char* memory() const { return bytes_.get(); }
  int64_t bytes() const { return size_; }
  // Becomes such a copy: it makes room, the caller fills bytes() at memory(), and says so.
  void expect(const std::string& description);
  char* memory() { return bytes_.get(); }
  void arrived() { whole_ = true; }
  int64_t capacity() const { return capacity_; }  // bytes that there is room for already

 private:
  void place_pieces(Device& device);

  bool whole_ = false;
  StateVersion version_;
  int64_t optimizer_steps_ = 0;
  std::vector<std::string> optimizer_states_;
  std::vector<ShardPiece> pieces_;
  std::shared_ptr<char> bytes_;
  Device* copying_ = nullptr;  // the device whose copy is under way
  int64_t size_ = 0, capacity_ = 0;
};

}  // namespace sailor
