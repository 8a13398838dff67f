// Which partial pipelines of a pipeline template search need not be followed: those that no completion of
// which can be accepted, by the user's limits or by what the caller still accepts (its threshold, which falls
// as pipeline templates are found). Bounds follow the threshold in steps; versions tell them apart. Not
// thread-safe.
#pragma once

#include <functional>
#include <vector>

#include "planner/search/bounds/completion_bound.h"
#include "planner/search/dynamic_program/label_store.h"

namespace sailor {

class TemplatePruning {
 public:
  // `capacity`: by limit, for one replica. `coarse`: quicker bounds. Says in `outcome` why something was left
  // out. All references must outlive this.
  TemplatePruning(const TemplateProblem& problem, BoundTables& tables, const std::vector<double>& capacity,
                  bool coarse, const std::function<double()>& threshold, TemplateOutcome& outcome);

  // What an iteration may still take.
  double accepted_s() const;
  bool worse_than_accepted(double iteration_s, double usd);
  // Can no completion of the label be accepted? Sets its bound and the version of bounds otherwise.
  bool hopeless(Label& label);
  // From now on stage_possible() is about stages right before this label.
  void set_behind(const Label& label);
  // Might a stage there in this placement class, of this use and with a first layer in between, be part of
  // what is accepted? No is certain.
  bool stage_possible(int placement, const StageUse& use, int lowest, int highest) {
    if (!p_.bounding) return true;
    if (behind_version_ != bounds_version_) set_behind(*behind_);
    if (completion_.stage_possible(placement, use, lowest, highest)) return true;
    // Only what is accepted already, or a limit, refuses a stage here; memory alone never does.
    if (completion_.money_mattered()) outcome_.over_budget = true;
    return false;
  }
  // Keeps the bounds in step with what is accepted.
  void tighten();
  // Asks for the threshold anew.
  void refresh() { threshold_now_ = threshold_(); }

  int version() const { return bounds_version_; }
  CompletionBound& completion() { return completion_; }
  PartialPipeline partial(const Label& label) const;

 private:
  double accepted_usd() const;

  const TemplateProblem& p_;
  const ClassCosts& costs_;
  const bool published_;
  const double rounds_;
  const bool cost_matters_;
  const std::function<double()>& threshold_;
  TemplateOutcome& outcome_;
  CompletionBound completion_;
  double threshold_now_;  // falls only when something is found
  double tightened_s_, tightened_usd_;
  int bounds_version_ = 0;
  const Label* behind_ = nullptr;
  int behind_version_ = 0;  // of the bounds that stage_possible() has
};

}  // namespace sailor
