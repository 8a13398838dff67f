#include "planner/search/improvement/zone_sequence.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "planner/search/improvement/zone_program.h"

namespace sailor {
namespace {

constexpr double kZero = 1e-6;
constexpr size_t kMostSteps = 12;
constexpr int64_t kMostForTimes = 60;  // linear programs for the numbers of one order

class SequenceSearch {
 public:
  SequenceSearch(const SequenceProblem& problem, int64_t& effort)
      : p_(problem), effort_(effort), left_(problem.capacity), open_(problem.pipelines) {}

  std::optional<ZoneSequence> run() {
    extend();
    return std::move(found_);
  }

 private:
  bool repeats(int column) const { return p_.behind[column][column] != 0; }
  bool on_path(int column) const { return std::find(path_.begin(), path_.end(), column) != path_.end(); }

  // The columns that may follow, in any number of steps.
  std::vector<char> reachable() const {
    const size_t n = p_.uses.size();
    if (path_.empty()) return std::vector<char>(n, 1);
    std::vector<char> seen(n, 0);
    std::vector<int> queue{path_.back()};
    for (size_t i = 0; i < queue.size(); ++i)
      for (size_t b = 0; b < n; ++b)
        if (p_.behind[queue[i]][b] && !seen[b]) {
          seen[b] = 1;
          queue.push_back(static_cast<int>(b));
        }
    return seen;
  }

  // Steps from each column to the nearest of the targets.
  std::vector<int> steps_to(const std::vector<char>& target) const {
    const size_t n = p_.uses.size();
    std::vector<int> steps(n, std::numeric_limits<int>::max()), queue;
    for (size_t a = 0; a < n; ++a)
      if (target[a]) {
        steps[a] = 0;
        queue.push_back(static_cast<int>(a));
      }
    for (size_t i = 0; i < queue.size(); ++i)
      for (size_t a = 0; a < n; ++a)
        if (p_.behind[a][queue[i]] && steps[a] == std::numeric_limits<int>::max()) {
          steps[a] = steps[queue[i]] + 1;
          queue.push_back(static_cast<int>(a));
        }
    return steps;
  }

  ZoneProgram mix_of(const std::vector<int>& columns, const std::vector<int64_t>& left, double enough) {
    std::vector<const std::vector<int>*> uses;
    for (int column : columns) uses.push_back(&p_.uses[column]);
    ZoneProgram mix = most_pipelines(uses, left, enough);
    effort_ -= mix.work;
    return mix;
  }

  // The columns of the path that may be repeated, each once.
  std::vector<int> repeated() const {
    std::vector<int> out;
    for (int column : path_)
      if (repeats(column) && std::find(out.begin(), out.end(), column) == out.end()) out.push_back(column);
    return out;
  }

  // From the path as it is, of which every column stands once.
  bool extend() {
    if (effort_ <= 0) return false;
    if (!path_.empty() && complete()) return true;
    if (open_ <= 0 || path_.size() >= kMostSteps) return false;
    const std::vector<char> reach = reachable();
    effort_ -= static_cast<int64_t>(reach.size() * reach.size());
    std::vector<int> columns;
    for (size_t v = 0; v < reach.size(); ++v)
      if (reach[v] || (on_path(static_cast<int>(v)) && repeats(static_cast<int>(v))))
        columns.push_back(static_cast<int>(v));
    const ZoneProgram mix = mix_of(columns, left_, open_);
    if (mix.pipelines < open_ - kZero) return false;
    // First what the linear program takes, or the way there; then whatever else may follow.
    std::vector<char> wanted(reach.size(), 0);
    std::vector<double> times(reach.size(), 0);
    for (size_t k = 0; k < columns.size(); ++k)
      if (mix.times[k] > kZero && !on_path(columns[k])) {
        wanted[columns[k]] = 1;
        times[columns[k]] = mix.times[k];
      }
    const std::vector<int> steps = steps_to(wanted);
    std::vector<int> next;
    for (size_t v = 0; v < reach.size(); ++v)
      if ((path_.empty() || p_.behind[path_.back()][v]) &&
          !(on_path(static_cast<int>(v)) && repeats(static_cast<int>(v))))
        next.push_back(static_cast<int>(v));
    std::stable_sort(next.begin(), next.end(), [&](int a, int b) {
      return steps[a] != steps[b] ? steps[a] < steps[b] : times[a] > times[b];
    });
    for (int column : next) {
      if (!take(column, 1)) continue;
      path_.push_back(column);
      if (extend()) return true;
      path_.pop_back();
      take(column, -1);
      if (effort_ <= 0) return false;
    }
    return false;
  }

  bool take(int column, int times) {
    for (size_t c = 0; times > 0 && c < left_.size(); ++c)
      if (left_[c] < p_.uses[column][c] * static_cast<int64_t>(times)) return false;
    for (size_t c = 0; c < left_.size(); ++c) left_[c] -= p_.uses[column][c] * static_cast<int64_t>(times);
    open_ -= times;
    return true;
  }

  // Are the columns of the path enough, repeated as often as it takes?
  bool complete() {
    times_of_ = repeated();
    more_.assign(times_of_.size(), 0);
    tries_ = kMostForTimes;
    if (!repeat_from(0)) return false;
    ZoneSequence sequence;
    std::vector<char> done(times_of_.size(), 0);
    for (int column : path_) {
      sequence.push_back({column, 1});
      const auto place = std::find(times_of_.begin(), times_of_.end(), column) - times_of_.begin();
      if (static_cast<size_t>(place) == times_of_.size() || done[place]) continue;
      sequence.back().times += more_[place];
      done[place] = 1;
    }
    found_ = std::move(sequence);
    return true;
  }

  // Whole numbers for times_of_[k] and later.
  bool repeat_from(size_t k) {
    if (open_ == 0) return true;
    if (k == times_of_.size() || --tries_ < 0) return false;
    const std::vector<int> rest(times_of_.begin() + static_cast<ptrdiff_t>(k), times_of_.end());
    const ZoneProgram mix = mix_of(rest, left_, open_);
    if (mix.pipelines < open_ - kZero) return false;
    // From what the linear program says outwards.
    const double middle = k + 1 == times_of_.size() ? open_ : mix.times[0];
    std::vector<int> values(open_ + 1);
    std::iota(values.begin(), values.end(), 0);
    std::stable_sort(values.begin(), values.end(),
                     [&](int a, int b) { return std::abs(a - middle) < std::abs(b - middle); });
    if (k + 1 == times_of_.size()) values.resize(1);
    for (int n : values) {
      if (!take(times_of_[k], n)) continue;
      more_[k] = n;
      const bool done = repeat_from(k + 1);
      take(times_of_[k], -n);
      if (done) return true;
      if (tries_ < 0 || effort_ <= 0) return false;
    }
    more_[k] = 0;
    return false;
  }

  const SequenceProblem& p_;
  int64_t& effort_;
  std::vector<int64_t> left_;
  int open_;  // pipelines that have no column yet
  std::vector<int> path_;
  std::vector<int> times_of_, more_;
  int64_t tries_ = 0;
  std::optional<ZoneSequence> found_;
};

}  // namespace

std::optional<ZoneSequence> find_sequence(const SequenceProblem& problem, int64_t& effort) {
  return SequenceSearch(problem, effort).run();
}

}  // namespace sailor
