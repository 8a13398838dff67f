#include "planner/search/dynamic_program/new_stage.h"

#include <algorithm>
#include <cmath>

namespace sailor {

NewStage::NewStage(const TemplateProblem& problem, const Label& behind)
    : p_(problem),
      behind_(behind),
      published_(problem.costs.stage().model() == CostModel::published),
      in_flight_(published_ ? behind.stages + 1
                            : std::min(behind.stages + 1, static_cast<int>(problem.microbatches))) {
  label.next = behind.stages > 0 ? &behind : nullptr;
  label.end_layer = behind.first_layer;
  label.stages = behind.stages + 1;
}

bool NewStage::set_class(int placement) {
  const ClassCosts& costs = p_.costs;
  double activation = 0, gradient = 0;
  if (behind_.stages > 0) {
    activation = costs.activation_s(placement, behind_.placement, behind_.first_layer);
    gradient = costs.gradient_s(placement, behind_.placement, behind_.first_layer);
    if (!std::isfinite(activation) || !std::isfinite(gradient)) return false;
  }
  label.placement = placement;
  label.pure = behind_.pure && costs.classes()[placement].kind == PlacementClass::Kind::pure;
  sum_s_ = behind_.sum_s + activation;
  // The stage that was leading is now complete: its gradient message is known.
  if (published_) {
    const double extra = (behind_.stages == 1 ? 2 : 1) * gradient;
    label.bottleneck_s = std::max(behind_.bottleneck_s, behind_.leading_s + extra);
    sum_s_ += extra;
  } else {
    label.bottleneck_s = std::max({behind_.bottleneck_s, behind_.leading_s, gradient});
    sum_s_ += gradient;
  }
  activation_ = label.last_message_s = activation;
  messages_usd_ = -1;
  return true;
}

double NewStage::messages_usd() {
  if (messages_usd_ < 0)
    messages_usd_ = behind_.stages > 0
                        ? p_.microbatches * p_.replicas *
                              p_.costs.message_usd(label.placement, behind_.placement, label.end_layer)
                        : 0;
  return messages_usd_;
}

}  // namespace sailor
