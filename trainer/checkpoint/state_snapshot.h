// A copy of a rank's part of the training state after a step, to be written while training continues; or a
// copy of another rank's snapshot. It takes as much memory as the rank's part of the checkpoint, which is
// reused for the next one. One thread at a time.
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
  // Replaces the content. Copies with as many threads as libtorch computes with. From a device the copy is
  // only enqueued, on its copy stream after what has been computed: operations that overwrite the state must
  // wait for that stream, and readers of the copy for wait(), from any thread.
  void take(const RankState& state, const StateVersion& version);
  void wait();

  // False before the first copy, and while one is being made.
  bool whole() const { return whole_; }
  const StateVersion& version() const { return version_; }
  int64_t optimizer_steps() const { return optimizer_steps_; }
  const LossScaleState& loss_scale() const { return loss_scale_; }
  const SpikeState& spikes() const { return spikes_; }
  const std::vector<ShardPiece>& pieces() const { return pieces_; }  // point into the copy

  // For a copy elsewhere: a description, and all bytes.
  std::string description() const;
  const char* memory() const { return bytes_.get(); }
  int64_t bytes() const { return size_; }
  // Becomes such a copy: allocates memory; the caller then fills bytes() at memory(), and confirms.
  void expect(const std::string& description);
  char* memory() { return bytes_.get(); }
  void arrived() { whole_ = true; }
  int64_t capacity() const { return capacity_; }  // allocated bytes

 private:
  void place_pieces(Device& device);

  bool whole_ = false;
  StateVersion version_;
  int64_t optimizer_steps_ = 0;
  LossScaleState loss_scale_;
  SpikeState spikes_;
  std::vector<ShardPiece> pieces_;
  std::shared_ptr<char> bytes_;
  Device* copying_ = nullptr;  // the device whose copy is in progress
  int64_t size_ = 0, capacity_ = 0;
};

}  // namespace sailor
