// A device that computes for real, on the CPU, and then waits until the time that another GPU type's profile
// gives for the same work has passed. Sleeping costs no CPU, so that many ranks of unlike devices run on a
// small machine with the timing of a large one.
//
// Where the real computation takes longer than the emulated one, the emulation is too fast for this machine:
// it is counted and reported, never hidden. Not thread-safe: one object per rank. Ranks of a TP group run on
// one machine: they compare clocks.
#pragma once

#include <cstdint>
#include <string>

#include "planner/profile/layer_profile.h"
#include "trainer/pipeline/pacer.h"

namespace sailor {

// The time that a device needs for a piece of work, read off its profile: the layers' times of the cell with
// that microbatch size, or of the nearest measured size, scaled by the number of sequences. Throws InputError
// when that TP degree was not measured.
double profiled_time_s(const LayerProfile& profile, const PhaseWork& work);

class EmulatedDevice : public Pacer {
 public:
  struct Counters {
    int64_t tasks = 0;
    double emulated_s = 0;
    int64_t overrun_tasks = 0;  // real computation took longer than the emulated time
    double overrun_s = 0;       // by how much, together
    double real_s = 0;          // computation of all tasks
  };

  explicit EmulatedDevice(LayerProfile profile);

  void joins(Communicator* tp) override { tp_ = tp; }
  void computed(const PhaseWork& work, Clock::time_point start) override;
  void part_computed(const PhaseWork& part, Clock::time_point start) override;
  const Counters& counters() const { return counters_; }

 private:
  // When the last member of the TP group had started: the collectives of a real group let nobody run ahead.
  Clock::time_point latest(Clock::time_point start) const;

  LayerProfile profile_;
  Counters counters_;
  Communicator* tp_ = nullptr;
};

}  // namespace sailor
