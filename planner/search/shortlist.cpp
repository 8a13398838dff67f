#include "planner/search/shortlist.h"

#include <algorithm>
#include <iterator>

namespace sailor {
namespace {

constexpr size_t kMostEntries = 2;
constexpr int kSteps = 96000;

}  // namespace

void Shortlist::add(const RealizeProblem& form, Realized realized, double bound) {
  const double value = form.goal.value(realized.value.iteration_s, realized.value.usd);
  const auto place =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.value > value; });
  // Several passes come by the same layout.
  if (place != entries_.begin()) {
    const Entry& before = *std::prev(place);
    if (before.value == value && before.form.replicas == form.replicas) return;
  }
  entries_.insert(place, {form, std::move(realized), value, bound});
  if (entries_.size() > kMostEntries) entries_.pop_back();
}

void Shortlist::improve(const std::function<double(const RealizeProblem&)>& threshold,
                        const std::function<void(const RealizeProblem&, const Realized&)>& found,
                        const std::function<bool()>& expired) {
  for (Entry& entry : entries_) {
    if (entry.bound >= threshold(entry.form)) continue;
    found(entry.form, improve_layout(entry.form, std::move(entry.realized), kSteps, expired));
  }
  entries_.clear();
}

}  // namespace sailor
