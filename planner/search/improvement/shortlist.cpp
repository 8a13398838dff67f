#include "planner/search/improvement/shortlist.h"

#include <algorithm>
#include <iterator>

namespace sailor {
namespace {

constexpr size_t kMostEntries = 2;
constexpr int kFewSteps = 12000, kSteps = 96000;

}  // namespace

void Shortlist::add(const AssignmentProblem& form, Assignment assigned, double bound) {
  const double value = form.goal.value(assigned.value.iteration_s, assigned.value.usd);
  const auto place =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.value > value; });
  // Several passes find the same layout.
  if (place != entries_.begin()) {
    const Entry& before = *std::prev(place);
    if (before.value == value && before.form.replicas == form.replicas) return;
  }
  entries_.insert(place, {form, std::move(assigned), value, bound});
  if (entries_.size() > kMostEntries) entries_.pop_back();
}

void Shortlist::improve(bool quickly_first, const std::function<double(const AssignmentProblem&)>& threshold,
                        const std::function<void(const AssignmentProblem&, const Assignment&)>& found,
                        const std::function<bool()>& expired) {
  for (const int steps : {kFewSteps, kSteps}) {
    if (steps == kFewSteps && !quickly_first) continue;
    for (const Entry& entry : entries_) {
      if (expired()) break;
      if (entry.bound < threshold(entry.form))
        found(entry.form, improve_layout(entry.form, entry.assigned, steps, expired));
    }
  }
  entries_.clear();
}

}  // namespace sailor
