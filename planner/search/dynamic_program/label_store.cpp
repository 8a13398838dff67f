#include "planner/search/dynamic_program/label_store.h"

#include <algorithm>

namespace sailor {
namespace {
constexpr size_t kMostBytes = 100u << 20;  // of labels
}  // namespace

LabelStore::LabelStore(const TemplateProblem& problem)
    : problem_(problem),
      rounds_(problem.microbatches - 1),
      limits_(problem.limits.size()),
      charge_matters_(problem.goal.charge_matters()) {}

// A lower bound on how much later `a` may end than `b` for any continuation, according to the entries.
double LabelStore::later_s(const Entry& a, const Entry& b, double floor_s) const {
  return rounds_ *
             std::max({0.0, a.bottleneck_s - std::max(floor_s, b.bottleneck_s), a.leading_s - b.leading_s}) +
         (a.sum_s - b.sum_s);
}

// For every continuation, does `a` end no later (and cost no more) than `b`?
bool LabelStore::dominates(const Entry& one, const Entry& other, double floor_s) const {
  if (one.stages > other.stages || one.first_used > other.first_used * (1 + kEqualWithin)) return false;
  const double later = later_s(one, other, floor_s);
  if (later > 0) return false;
  if ((one.stages == 1) != (other.stages == 1)) return false;
  const Label &a = *one.label, &b = *other.label;
  if (later + std::max(0.0, a.update_s - b.update_s) + std::max(0.0, a.sync_s - b.sync_s) +
          std::max(0.0, a.last_message_s - b.last_message_s) * problem_.microbatches >
      0)
    return false;
  if (charge_matters_ &&
      (a.fixed_charge > b.fixed_charge || a.charge_per_s > b.charge_per_s * (1 + kEqualWithin)))
    return false;
  for (size_t limit = 1; limit < limits_; ++limit)
    if (a.used[limit] > b.used[limit] * (1 + kEqualWithin)) return false;
  return true;
}

bool LabelStore::insert(Label& label, double floor_s) {
  if (buckets_.empty())
    buckets_.resize((static_cast<size_t>(problem_.costs.stage().layers()) + 1) *
                    problem_.costs.classes().size());
  Bucket& labels = bucket(label.first_layer, label.placement);
  Entry entry{label.sum_s, label.bottleneck_s, label.leading_s, label.used[0], label.stages, &label};
  const bool strong = problem_.dominance && (label.pure || !problem_.pure_dominance);
  // In the order of sums: only earlier labels can dominate, only later ones can be dominated.
  const auto place = std::upper_bound(labels.strong.begin(), labels.strong.end(), entry,
                                      [](const Entry& a, const Entry& b) { return a.sum_s < b.sum_s; }) -
                     labels.strong.begin();
  if (problem_.dominance) {
    for (ptrdiff_t i = 0; i < place; ++i)
      if (dominates(labels.strong[i], entry, floor_s)) return true;
    const auto beaten = [&](const Entry& other) { return dominates(entry, other, floor_s); };
    if (strong) {
      labels.strong.erase(std::remove_if(labels.strong.begin() + place, labels.strong.end(), beaten),
                          labels.strong.end());
      std::erase_if(labels.weak, beaten);
    }
  }
  if (labels_.size() *
          (sizeof(Label) + sizeof(Entry) + sizeof(std::vector<double>) + limits_ * sizeof(double)) >
      kMostBytes)
    return false;
  labels_.push_back(label);
  used_.emplace_back(label.used, label.used + limits_);
  labels_.back().used = used_.back().data();
  entry.label = &labels_.back();
  if (strong)
    labels.strong.insert(labels.strong.begin() + place, entry);
  else
    labels.weak.push_back(entry);
  return true;
}

void LabelStore::collect(int layer, int placement, std::vector<Label*>& out) {
  out.clear();
  if (buckets_.empty()) return;
  const Bucket& labels = bucket(layer, placement);
  for (const std::vector<Entry>* entries : {&labels.strong, &labels.weak})
    for (const Entry& entry : *entries) out.push_back(entry.label);
}

}  // namespace sailor
