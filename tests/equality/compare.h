// One rank's side of the comparison: trains, and compares its loss and its shards of the gradients with the
// reference in every step.
//
// ReLU needs care. Its gradient jumps where an activation crosses 0, and of the tens of millions of
// activations of a case a few are so close to 0 that another order of summation changes their sign. Then the
// row of that neuron's weights is off by one token's share, about 1e-3 of it, although nothing is wrong. In
// fp32 both sides therefore start with biases of +2 and -2 before every ReLU, ten deviations of what is added
// to them: every second neuron is active, the others are not. fp64 starts from the usual zeros.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/equality/case.h"
#include "tests/equality/reference_model.h"
#include "trainer/comm/communicator.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor::equality {

// max(max|gradient|, 1e-3 largest gradient of the model)
double gradient_scale(const at::Tensor& gradient, const ReferenceStep& step);

struct Outcome {
  double loss_err = 0;  // max over steps of |a - b| / |b|, of the z-loss too
  // max over steps and parameters of max|a - b| / gradient_scale(b), and of relative differences of norms and
  // averages
  double grad_err = 0;
  int max_in_flight = 0;
  bool in_flight_ok = true;  // equal to the schedule's number on every rank
  std::string worst;         // the parameter and step of grad_err

  void add(const Outcome& other);
};

// Comparison of one rank's trainer.
class Comparison {
 public:
  // `c` and `trainer` outlive the object.
  Comparison(const Case& c, const Plan& plan, int rank, RankTrainer& trainer);

  // Call it before the first step here: see above. What is not frozen is only set if it has no steps yet.
  void set_initial_values();
  void add(const StepResult& result, const ReferenceStep& expected);
  const Outcome& outcome() const { return outcome_; }

 private:
  using Count = std::function<void(double error, const std::string& what)>;
  void check_copies() const;
  void compare_averages(const ReferenceStep& expected, const Count& count) const;
  void compare_layer_norms(const StepResult& result, const ReferenceStep& expected, const Count& count) const;

  const JobSpec& job_;
  RankTrainer& trainer_;
  int allowed_in_flight_ = 0, tp_rank_ = 0;
  std::map<std::string, int64_t> first_of_;  // first element of this rank in the unsharded parameter
  std::set<std::string> gathered_;           // parameters of which only the slices are right
  Outcome outcome_;
};

// A part of the training under one plan.
struct Segment {
  const Plan& plan;
  int64_t end;              // trains until this many steps are done
  std::string load_from{};  // directory of checkpoints; empty: from the start
  std::string save_to{};    // after the last step, unless empty
};

Outcome train_and_compare(const Case& c, const Segment& segment, const std::vector<ReferenceStep>& reference,
                          int rank, CommFactory& factory, const DevicePlane* on = nullptr);
// The same without a reference: which of the segment's steps were skipped.
std::vector<bool> train_and_list_skipped(const Case& c, const Segment& segment, int rank,
                                         CommFactory& factory, const DevicePlane* on = nullptr);

// Unsharded initial values of every parameter, as in train_and_compare().
std::map<std::string, at::Tensor> initial_values_of(const JobSpec& job);

}  // namespace sailor::equality
