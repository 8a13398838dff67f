// The progress of a rank within a step, so that the survivors of a lost rank can agree on one state that all
// of them have, or can still reach.
//
// A step is committed by the reduction of the loss and the gradient norm over all ranks: a rank that has the
// result knows that every rank had its reduced gradients. Ranks without the result, because another one was
// lost in between, perform the same update with the values of a rank that has it. A step that no rank saw
// committed is dropped: its gradients are computed again. No rank is more than one step ahead of another.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/checkpoint/state_version.h"
#include "trainer/comm/communicator.h"

namespace sailor {

// The values over all ranks that a step is committed with; bitwise equal on all of them.
struct StepSums {
  double loss = 0;
  double gradient_norm = 0;
};

// Progress of one trainer. Only the trainer's thread changes it.
class StepProgress {
 public:
  // Version of the state in the optimizer's slices.
  const StateVersion& version() const { return version_; }
  // False while the state is being replaced: it then belongs to no step.
  bool whole() const { return whole_; }

  // The state was replaced by one of this version; later steps belong to lineage `next`.
  void starts_from(const StateVersion& version, int64_t next_lineage);
  void is_replaced() { whole_ = false; }

  void step_begins() { ready_ = false; }
  // This rank's gradients are reduced over all pipelines, and stay so until the update. Called before the
  // values of the step are reduced.
  void gradients_are_ready() { ready_ = true; }
  void committed(const StepSums& sums);
  // The optimizer has performed the step that was committed.
  void updated();

  // Called by all members of `group`, each with the progress of its previous trainer, or nullptr. Returns the
  // values with which `own` still has to perform its next update, if any. Throws CommError.
  static std::optional<StepSums> owed_update(Communicator& group, const StepProgress* own);

 private:
  StateVersion version_;
  int64_t next_lineage_ = 0;
  bool whole_ = true;
  bool ready_ = false;
  std::optional<StateVersion> committed_;  // version after the last committed step
  StepSums sums_;                          // of that step
};

// Of steps from here on; random.
int64_t new_lineage();

}  // namespace sailor
