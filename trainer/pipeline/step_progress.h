// How far a rank is with a step, such that the survivors of a lost rank can agree on one state that all of
// them have, or can still come to.
//
// The sum over all ranks of the loss and of the gradient's norm is where a step is committed: a rank that has
// the result knows that every rank had its summed gradients. Ranks that do not have it, because another one
// was lost in between, perform the same update with the numbers of one that has. A step that nobody saw
// committed is dropped: its gradients are summed again. No rank is more than a step ahead of another.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/checkpoint/state_version.h"
#include "trainer/comm/communicator.h"

namespace sailor {

// The sums over all ranks that a step is committed with; the same bits on all of them.
struct StepSums {
  double loss = 0;
  double gradient_norm = 0;
};

// Of one trainer. The trainer's thread alone changes it.
class StepProgress {
 public:
  // What the optimizer's slices hold.
  const StateVersion& version() const { return version_; }
  // False while the state is being replaced: it is of no step then.
  bool whole() const { return whole_; }

  // The state was replaced by one of this version; the steps from there on are of lineage `next`.
  void starts_from(const StateVersion& version, int64_t next_lineage);
  void is_replaced() { whole_ = false; }

  void step_begins() { ready_ = false; }
  // This rank's gradients are the sums over all pipelines, and stay so until the update. Called before the
  // sums of the step are asked for.
  void gradients_are_ready() { ready_ = true; }
  void committed(const StepSums& sums);
  // The optimizer has performed the step that was committed.
  void updated();

  // Of all members of `group`, each with the progress of its former trainer, or nullptr. Returns the sums
  // with which `own` has still to perform its next update, if it has. Throws CommError.
  static std::optional<StepSums> owed_update(Communicator& group, const StepProgress* own);

 private:
  StateVersion version_;
  int64_t next_lineage_ = 0;
  bool whole_ = true;
  bool ready_ = false;
  std::optional<StateVersion> committed_;  // what the last committed step leads to
  StepSums sums_;                          // of that step
};

}  // namespace sailor
