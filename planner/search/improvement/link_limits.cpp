#include "planner/search/improvement/link_limits.h"

#include <algorithm>

#include "planner/search/improvement/zone_program.h"

namespace sailor {
namespace {

constexpr double kRounding = 1e-6;  // of a pipeline

}  // namespace

size_t LinkLimits::columns(const BlockCosts& costs) {
  size_t columns = 1;
  for (int i = 0; i < costs.stages() && columns < SIZE_MAX / 64; ++i) columns *= costs.serving(i).size();
  return columns;
}

LinkLimits::LinkLimits(const AssignmentProblem& problem, const BlockCosts& costs)
    : p_(problem), costs_(costs), stages_(costs.stages()) {
  list_seconds();
  list_columns();
  list_uses();
}

void LinkLimits::list_seconds() {
  seconds_.assign(2 * (stages_ - 1) + 1, {});
  for (int i = 0; i < stages_; ++i)
    for (int a : costs_.serving(i)) {
      for (int b : costs_.serving(i)) seconds_[sums()].push_back(costs_.sync_s(i, a, b));
      if (i + 1 == stages_) continue;
      for (int b : costs_.serving(i + 1)) {
        seconds_[2 * i].push_back(costs_.activation_s(i, a, b));
        seconds_[2 * i + 1].push_back(costs_.gradient_s(i, a, b));
      }
    }
  for (std::vector<double>& seconds : seconds_) {
    std::sort(seconds.begin(), seconds.end());
    seconds.erase(std::unique(seconds.begin(), seconds.end()), seconds.end());
  }
}

// By option that serves in the stage, the least limit of sums with which any number of replicas can have it:
// of all ways back to it along the ring, the one whose slowest link is fastest.
std::vector<double> LinkLimits::round_trips(int stage) const {
  const std::vector<int>& serving = costs_.serving(stage);
  const size_t n = serving.size();
  std::vector<double> slowest(n * n);
  for (size_t a = 0; a < n; ++a)
    for (size_t b = 0; b < n; ++b) slowest[a * n + b] = costs_.sync_s(stage, serving[a], serving[b]);
  for (size_t via = 0; via < n; ++via)
    for (size_t a = 0; a < n; ++a)
      for (size_t b = 0; b < n; ++b)
        slowest[a * n + b] =
            std::min(slowest[a * n + b], std::max(slowest[a * n + via], slowest[via * n + b]));
  std::vector<double> out;
  for (size_t a = 0; a < n; ++a) out.push_back(slowest[a * n + a]);
  return out;
}

int LinkLimits::index_of(size_t limit, double time_s) const {
  const std::vector<double>& seconds = seconds_[limit];
  return static_cast<int>(std::lower_bound(seconds.begin(), seconds.end(), time_s) - seconds.begin());
}

void LinkLimits::list_columns() {
  columns_.emplace_back();
  needs_.emplace_back(size(), 0);
  for (int i = 0; i < stages_; ++i) {
    const std::vector<double> trips = round_trips(i);
    std::vector<std::vector<int>> columns;
    std::vector<Limits> needs;
    for (size_t v = 0; v < columns_.size(); ++v)
      for (size_t k = 0; k < costs_.serving(i).size(); ++k) {
        const int option = costs_.serving(i)[k];
        Limits need = needs_[v];
        need[sums()] = std::max(need[sums()], index_of(sums(), trips[k]));
        if (i > 0) {
          const int before = columns_[v].back();
          need[2 * i - 2] = index_of(2 * i - 2, costs_.activation_s(i - 1, before, option));
          need[2 * i - 1] = index_of(2 * i - 1, costs_.gradient_s(i - 1, before, option));
        }
        columns.push_back(columns_[v]);
        columns.back().push_back(option);
        needs.push_back(std::move(need));
      }
    columns_ = std::move(columns);
    needs_ = std::move(needs);
  }
}

void LinkLimits::list_uses() {
  const Resources& resources = p_.costs.resources();
  std::vector<size_t> counters;
  for (size_t c = 0; c < resources.capacity.size(); ++c) {
    bool used = false;
    for (int i = 0; i < stages_; ++i)
      for (int o : costs_.serving(i)) used = used || resources.use[costs_.option(o)][c] > 0;
    if (!used) continue;
    counters.push_back(c);
    capacity_.push_back(resources.capacity[c]);
  }
  for (const std::vector<int>& column : columns_) {
    std::vector<int> use(counters.size(), 0);
    for (int o : column)
      for (size_t c = 0; c < counters.size(); ++c) use[c] += resources.use[costs_.option(o)][counters[c]];
    const auto known = std::find(uses_.begin(), uses_.end(), use);
    use_of_.push_back(known - uses_.begin());
    if (known == uses_.end()) uses_.push_back(std::move(use));
  }
}

double LinkLimits::iteration_s(const Limits& limits) const {
  std::vector<StageParts> times = costs_.fixed();
  for (int i = 0; i + 1 < stages_; ++i) {
    times[i].activation_s = seconds_[2 * i][limits[2 * i]];
    times[i].gradient_s = seconds_[2 * i + 1][limits[2 * i + 1]];
  }
  times[0].sync_s = seconds_[sums()][limits[sums()]];
  return sailor::iteration_s(times, p_.microbatches);
}

std::vector<int> LinkLimits::within(const Limits& limits, bool often) const {
  std::vector<int> out;
  for (size_t v = 0; v < columns_.size(); ++v) {
    bool within = true;
    for (size_t k = 0; k < (often ? size() : sums()) && within; ++k) within = needs_[v][k] <= limits[k];
    if (within) out.push_back(static_cast<int>(v));
  }
  return out;
}

bool LinkLimits::possible(const Limits& limits, int64_t& effort) const {
  effort -= static_cast<int64_t>(columns_.size());
  std::vector<char> used(uses_.size(), 0);
  for (int v : within(limits, true)) used[use_of_[v]] = 1;
  std::vector<const std::vector<int>*> uses;
  for (size_t u = 0; u < uses_.size(); ++u)
    if (used[u]) uses.push_back(&uses_[u]);
  const double enough = p_.replicas - stages_ - kRounding;
  if (uses.empty()) return enough <= 0;
  const ZoneProgram mix = most_pipelines(uses, capacity_, enough);
  effort -= mix.work;
  return mix.pipelines >= enough;
}

SequenceProblem LinkLimits::sequence_over(const std::vector<int>& columns, const Limits& limits) const {
  const double most_s = seconds_[sums()][limits[sums()]];
  SequenceProblem sequence{{}, {}, capacity_, p_.replicas};
  for (int a : columns) {
    sequence.uses.push_back(uses_[use_of_[a]]);
    std::vector<char> behind;
    for (int b : columns) {
      bool may = true;
      for (int i = 0; i < stages_ && may; ++i)
        may = costs_.sync_s(i, columns_[a][i], columns_[b][i]) <= most_s;
      behind.push_back(may);
    }
    sequence.behind.push_back(std::move(behind));
  }
  return sequence;
}

}  // namespace sailor
