// The value of a plan under the native cost model, by simulate() and check_plan() alone, for the search's
// plan and for its rivals.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/features.h"
#include "planner/simulator/simulate.h"

namespace sailor::bench {

struct Verdict {
  double iteration_s = 0;
  double missing_bytes = 0;  // memory in excess of the GPUs', summed over ranks' stages; 0 = the plan fits

  bool fits() const { return missing_bytes <= 0; }
  // Of two plans that do not fit, the one with less excess memory; else the faster one.
  bool better_than(const Verdict& other) const {
    if (missing_bytes != other.missing_bytes) return missing_bytes < other.missing_bytes;
    return iteration_s < other.iteration_s;
  }
};

// A plan that competes with the search's.
struct Rival {
  std::string name;  // how it was made, without commas
  Plan plan;
  double iteration_s = 0;
};
// Keeps the faster of two, either of which may be absent.
void keep_faster(std::optional<Rival>& best, std::optional<Rival> other);

// Counts simulations. Not thread-safe. References of the context must outlive it.
class Judge {
 public:
  explicit Judge(const PlanningContext& context, PlanFeatures allowed = trainable_features())
      : context_(context), allowed_(std::move(allowed)) {}

  const PlanningContext& context() const { return context_; }
  const PlanFeatures& allowed() const { return allowed_; }
  // For a plan without violations; nothing if it needs layers or links that are not profiled.
  std::optional<Prediction> prediction(const Plan& plan);
  std::optional<Verdict> verdict(const Plan& plan);
  // Violations of a plan for this job and cluster: empty = valid and placed.
  std::vector<std::string> violations(const Plan& plan) const;
  int64_t simulations() const { return simulations_; }

 private:
  PlanningContext context_;
  PlanFeatures allowed_;
  int64_t simulations_ = 0;
};

}  // namespace sailor::bench
