#include "planner/search/improvement/pipeline_blocks.h"

#include <algorithm>
#include <cmath>

#include "planner/search/improvement/zone_program.h"

namespace sailor {
namespace {

// Large: single slow pairs show. Not too large: one of many slow pairs less shows as well.
constexpr double kPower = 32;
constexpr double kPipelineRounding = 1e-6;  // of a pipeline

}  // namespace

BlockCosts::BlockCosts(const AssignmentProblem& problem, const Layout& layout)
    : p_(problem), stages_(static_cast<int>(layout.stages.size())), cut_(layout) {
  const StageCosts& costs = problem.costs.stage();
  const Resources& resources = problem.costs.resources();
  const auto same_kind = [&](int a, int b) {
    const Option &x = resources.options[a], &y = resources.options[b];
    return alike_but_for_zone(x, y) && x.region == y.region;
  };
  for (int o : costs.options())
    if (std::any_of(layout.stages.begin(), layout.stages.end(), [&](const Layout::Stage& stage) {
          return std::any_of(stage.runs.begin(), stage.runs.end(),
                             [&](const Layout::Run& run) { return same_kind(run.option, o); });
        }))
      options_.push_back(o);
  const int n = static_cast<int>(options_.size());
  alike_.resize(n);
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b)
      if (same_kind(options_[a], options_[b])) alike_[a].push_back(b);
  uses_.resize(n);
  for (size_t c = 0; c < resources.capacity.size(); ++c) {
    if (std::none_of(options_.begin(), options_.end(), [&](int o) { return resources.use[o][c] > 0; }))
      continue;
    capacity_.push_back(resources.capacity[c]);
    for (int o = 0; o < n; ++o) uses_[o].push_back(resources.use[options_[o]][c]);
  }
  fixed_.resize(stages_);
  for (int o : options_) charge_per_s_.push_back(resources.options[o].rate.idle_per_s);
  rings_.resize(static_cast<size_t>(stages_) * n * n);
  boundaries_.resize(rings_.size());
  // Only options of the kinds of a stage can come to run in it.
  std::vector<std::vector<bool>> serves(stages_, std::vector<bool>(n, false));
  for (int i = 0; i < stages_; ++i)
    for (const Layout::Run& run : layout.stages[i].runs)
      for (int o : alike_[index_of(run.option)]) serves[i][o] = true;
  for (int i = 0; i < stages_; ++i) {
    Layout::Stage& stage = cut_.stages[i];
    ReplicaShape least = resources.options[stage.runs[0].option].shape;
    for (const Layout::Run& run : stage.runs) {
      least = std::min(least, resources.options[run.option].shape);
      fixed_[i].compute_s =
          std::max(fixed_[i].compute_s, costs.compute_s(run.option, stage.first_layer, stage.end_layer));
      fixed_[i].update_s = std::max(fixed_[i].update_s, costs.update_s(run.option, stage.first_layer));
    }
    for (int o : options_)
      work_charge_.push_back(p_.microbatches * costs.work_charge(o, stage.first_layer, stage.end_layer));
    stage.runs.clear();
    for (int a = 0; a < n; ++a)
      for (int b = 0; b < n; ++b) {
        const int from = options_[a], to = options_[b];
        if (serves[i][a] && serves[i][b] && p_.replicas > 1) {
          const double seconds =
              costs.sync_s(from, to, least.parts(), stage.first_layer, stage.end_layer, p_.replicas);
          rings_[at(i, a, b)] = {
              seconds, std::pow(seconds, kPower),
              costs.sync_charge(from, to, stage.first_layer, stage.end_layer, p_.replicas)};
        }
        if (i + 1 == stages_ || !serves[i][a] || !serves[i + 1][b]) continue;
        const double activation_s = costs.activation_s(from, to, stage.end_layer);
        const double gradient_s = costs.gradient_s(to, from, stage.end_layer);
        boundaries_[at(i, a, b)] = {activation_s, std::pow(activation_s, kPower), gradient_s,
                                    std::pow(gradient_s, kPower),
                                    p_.microbatches * costs.message_charge(from, to, stage.end_layer)};
      }
  }
}

int BlockCosts::index_of(int option) const {
  return static_cast<int>(std::find(options_.begin(), options_.end(), option) - options_.begin());
}

bool BlockCosts::open() const {
  return std::any_of(alike_.begin(), alike_.end(), [](const auto& alike) { return alike.size() > 1; });
}

BlockCosts::Columns BlockCosts::columns_of(const Layout& layout) const {
  Columns columns(p_.replicas);
  for (const Layout::Stage& stage : layout.stages) {
    size_t j = 0;
    for (const Layout::Run& run : stage.runs)
      for (int k = 0; k < run.replicas; ++k) columns[j++].push_back(index_of(run.option));
  }
  return columns;
}

BlockCosts::Columns BlockCosts::columns_of(const PipelineBlocks& blocks) {
  Columns columns;
  for (const PipelineBlock& block : blocks)
    for (int k = 0; k < block.times; ++k)
      columns.insert(columns.end(), block.columns.begin(), block.columns.end());
  return columns;
}

PipelineBlocks BlockCosts::blocks_of(const Columns& columns) {
  PipelineBlocks blocks;
  for (size_t j = 0; j < columns.size();) {
    // The pattern that covers most from here on, the shortest of equal ones; columns without repetition are
    // single.
    size_t best_length = 1, best_times = 1;
    for (size_t length = 1; length <= kLongestPattern && j + 2 * length <= columns.size(); ++length) {
      size_t end = j + length;
      while (end < columns.size() && columns[end] == columns[end - length]) ++end;
      const size_t times = (end - j) / length;
      if (times > 1 && times * length > best_times * best_length) {
        best_length = length;
        best_times = times;
      }
    }
    blocks.push_back(
        {{columns.begin() + j, columns.begin() + j + best_length}, static_cast<int>(best_times)});
    j += best_length * best_times;
  }
  return blocks;
}

Layout BlockCosts::layout_of(const PipelineBlocks& blocks) const {
  Layout layout = cut_;
  for (const PipelineBlock& block : blocks)
    for (int k = 0; k < block.times; ++k)
      for (const std::vector<int>& column : block.columns)
        for (int i = 0; i < stages_; ++i) layout.stages[i].append(options_[column[i]], 1);
  return layout;
}

void BlockCosts::take(int option, int64_t replicas, std::vector<int64_t>& left) const {
  for (size_t c = 0; c < left.size(); ++c) left[c] -= replicas * uses_[option][c];
}

int64_t BlockCosts::most(int option, const std::vector<int64_t>& left) const {
  int64_t replicas = p_.replicas;
  for (size_t c = 0; c < left.size(); ++c)
    if (uses_[option][c] > 0) replicas = std::min(replicas, left[c] / uses_[option][c]);
  return replicas;
}

double BlockCosts::excess(const PipelineBlocks& blocks) const {
  std::vector<int64_t> left = capacity_;
  for (const PipelineBlock& block : blocks)
    for (const std::vector<int>& column : block.columns)
      for (int o : column) take(o, block.times, left);
  double excess = 0;
  for (size_t c = 0; c < left.size(); ++c)
    if (left[c] < 0)
      excess -= static_cast<double>(left[c]) / static_cast<double>(std::max<int64_t>(1, capacity_[c]));
  return excess;
}

bool BlockCosts::recount(PipelineBlocks& blocks) const {
  std::vector<int64_t> left = capacity_;
  std::vector<RepeatedPattern> patterns;
  int open = p_.replicas;
  for (const PipelineBlock& block : blocks) {
    RepeatedPattern pattern{static_cast<int>(block.columns.size()), std::vector<int>(left.size(), 0)};
    for (const std::vector<int>& column : block.columns)
      for (int o : column)
        for (size_t c = 0; c < left.size(); ++c) pattern.use[c] += uses_[o][c];
    for (size_t c = 0; c < left.size(); ++c)
      if ((left[c] -= pattern.use[c]) < 0) return false;
    if ((open -= pattern.pipelines) < 0) return false;
    patterns.push_back(std::move(pattern));
  }
  const ZoneProgram mix = most_pipelines(patterns, left, open);
  if (mix.pipelines < open - kPipelineRounding) return false;
  // Rounded down; then the rest that still fits.
  const auto repeat = [&](size_t b, int times) {
    const RepeatedPattern& pattern = patterns[b];
    times = std::min(times, open / pattern.pipelines);
    for (size_t c = 0; c < left.size(); ++c)
      if (pattern.use[c] > 0) times = static_cast<int>(std::min<int64_t>(times, left[c] / pattern.use[c]));
    for (size_t c = 0; c < left.size(); ++c) left[c] -= static_cast<int64_t>(times) * pattern.use[c];
    open -= times * pattern.pipelines;
    blocks[b].times += times;
  };
  for (PipelineBlock& block : blocks) block.times = 1;
  for (size_t b = 0; b < blocks.size(); ++b) repeat(b, static_cast<int>(mix.times[b] + kPipelineRounding));
  for (size_t b = 0; b < blocks.size(); ++b) repeat(b, open);
  return open == 0;
}

BlockCosts::Score BlockCosts::score(const PipelineBlocks& blocks) {
  times_ = smooth_ = fixed_;
  double charge_per_s = 0, fixed = 0;
  for (size_t b = 0; b < blocks.size(); ++b) {
    const PipelineBlock& block = blocks[b];
    const bool end = b + 1 == blocks.size();  // sums in a ring pay for the wrap, but do not wait for it
    const std::vector<int>& next_block = blocks[end ? 0 : b + 1].columns.front();
    for (size_t x = 0; x < block.columns.size(); ++x) {
      const std::vector<int>& column = block.columns[x];
      const bool last = x + 1 == block.columns.size();
      const std::vector<int>& next = last ? block.columns.front() : block.columns[x + 1];
      // The pattern's last column meets its first once less often than it is repeated.
      const int inside = last ? block.times - 1 : block.times;
      for (int i = 0; i < stages_; ++i) {
        const int o = column[i];
        StageParts &t = times_[i], &smooth = smooth_[i];
        charge_per_s += block.times * charge_per_s_[o];
        fixed +=
            block.times * work_charge_[static_cast<size_t>(i) * options_.size() + static_cast<size_t>(o)];
        if (i + 1 < stages_) {
          const Boundary& boundary = boundaries_[at(i, o, column[i + 1])];
          t.activation_s = std::max(t.activation_s, boundary.activation_s);
          t.gradient_s = std::max(t.gradient_s, boundary.gradient_s);
          smooth.activation_s += block.times * boundary.activation_power;
          smooth.gradient_s += block.times * boundary.gradient_power;
          fixed += block.times * boundary.message_charge;
        }
        if (p_.replicas < 2) continue;
        if (inside > 0) {
          const Ring& ring = rings_[at(i, o, next[i])];
          t.sync_s = std::max(t.sync_s, ring.sync_s);
          smooth.sync_s += inside * ring.sync_power;
          fixed += inside * ring.sync_charge;
        }
        if (last) {
          const Ring& ring = rings_[at(i, o, next_block[i])];
          fixed += ring.sync_charge;
          if (!end) {
            t.sync_s = std::max(t.sync_s, ring.sync_s);
            smooth.sync_s += ring.sync_power;
          }
        }
      }
    }
  }
  for (StageParts& t : smooth_)
    for (double* sum : {&t.activation_s, &t.gradient_s, &t.sync_s})
      *sum = *sum > 0 ? std::pow(*sum / p_.replicas, 1 / kPower) : 0;
  Score out;
  out.value.iteration_s = iteration_s(times_, p_.microbatches);
  out.value.charge = out.value.iteration_s * charge_per_s + fixed;
  out.smooth.iteration_s = iteration_s(smooth_, p_.microbatches);
  out.smooth.charge = out.smooth.iteration_s * charge_per_s + fixed;
  return out;
}

}  // namespace sailor
