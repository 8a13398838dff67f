// A device that really computes, on the CPU, and then waits until as much time has passed as the profile of
// another GPU type gives for the same work. Sleeping needs no CPU time: many ranks with different devices
// run on a small machine with the timing of a large one.
//
// When the real computation takes longer than the emulated one, the emulation is too fast for this machine:
// this is counted and reported, never hidden. Not thread-safe: one object per rank. Ranks of a TP group run
// on one machine: they compare clocks.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "planner/profile/layer_profile.h"
#include "trainer/pipeline/pacer.h"

namespace sailor {

// The time of a piece of work on a device, from its profile: the layer times of the cell with that microbatch
// size, or of the nearest measured size, scaled by the number of sequences. `host_bytes_per_s`: each way
// between the device and its host, for what is offloaded; 0 = it takes no time. Throws InputError when that
// TP degree was not measured.
double profiled_time_s(const LayerProfile& profile, const PhaseWork& work, double host_bytes_per_s = 0);

class EmulatedDevice : public Pacer {
 public:
  struct Counters {
    int64_t tasks = 0;
    double emulated_s = 0;
    int64_t overrun_tasks = 0;  // real computation took longer than the emulated time
    double overrun_s = 0;       // total excess
    double real_s = 0;          // computation time of all tasks
  };

  // `host_bytes_per_s`: as for profiled_time_s().
  explicit EmulatedDevice(LayerProfile profile, double host_bytes_per_s = 0);

  void joins(Communicator* tp, Communicator* cp) override { groups_ = {tp, cp}; }
  void computed(const PhaseWork& work, Clock::time_point start) override;
  void part_computed(const PhaseWork& part, Clock::time_point start) override;
  const Counters& counters() const { return counters_; }

 private:
  // When the last rank of the replica started: the communication of real groups synchronizes their members.
  Clock::time_point latest(Clock::time_point start) const;

  LayerProfile profile_;
  double host_bytes_per_s_;
  Counters counters_;
  std::array<Communicator*, 2> groups_{};
};

}  // namespace sailor
