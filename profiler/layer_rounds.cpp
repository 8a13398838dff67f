#include "profiler/layer_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <tuple>
#include <utility>

#include "planner/process/seconds_since.h"

namespace sailor {
namespace {

constexpr int kMostRounds = 20;  // of cells that are not precise yet, while there is time

void put_time(ProfileFile& profile, const ProfileFile::TimeCell& cell) {
  std::erase_if(profile.times, [&cell](const auto& c) {
    return c.microbatch == cell.microbatch && c.shape == cell.shape && c.kind == cell.kind;
  });
  profile.times.push_back(cell);
}

void sort_cells(ProfileFile& profile) {
  std::sort(profile.times.begin(), profile.times.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.shape, a.microbatch, a.kind) < std::tuple(b.shape, b.microbatch, b.kind);
  });
  std::sort(profile.sizes.begin(), profile.sizes.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.shape, a.kind) < std::tuple(b.shape, b.kind);
  });
}

bool precise(const StackBench::ByKind& cell) {
  double whole_s = 0, unsure_s = 0;  // of one layer of each kind
  for (const LayerMeasurement& m : cell) {
    const double busy_s = m.times.forward_s + m.times.backward_s;
    whole_s += busy_s;
    unsure_s += m.relative_error * busy_s;
  }
  return unsure_s <= MeasuringOptions().relative_error * whole_s;
}

MeasuringOptions collectives_of(const MeasuringOptions& layers) {
  MeasuringOptions options;
  options.max_seconds = layers.max_seconds;
  return options;
}

}  // namespace

LayerRounds::LayerRounds(LayerRoundsRequest request, const MeasuringOptions& options, std::string file,
                         ProfileFile& profile)
    : request_(std::move(request)),
      options_(options),
      file_(std::move(file)),
      kinds_(layer_kinds(request_.job.model)),
      profile_(profile),
      crowd_(request_.job, request_.ranks, collectives_of(options), request_.gpus),
      journal_(file_, profile.measured, kinds_.size()) {}

void LayerRounds::measure(const std::function<void(double done, double total)>& advance) {
  for (const auto& [cell, rounds] : journal_.rounds())
    if (std::ranges::count(request_.tps, cell.first) > 0) put_cell(cell.first, cell.second);
  const auto begin = std::chrono::steady_clock::now();
  // Rounds after the first kRounds, of some cells, count for nothing.
  const double cells = kRounds * static_cast<double>(request_.tps.size() * request_.microbatches.size());
  double cells_done = 0;
  for (int round = 0; round < kMostRounds; ++round) {
    for (const int tp : request_.tps) {
      const bool may_end = round >= kRounds || (request_.open_ended && round > 0);
      if (may_end && seconds_since(begin) >= request_.seconds) return;
      if (const std::vector<int> due = due_in(round, tp); !due.empty()) measure_round(round, tp, due);
      cells_done += static_cast<double>(request_.microbatches.size());
      if (advance && round < kRounds) advance(cells_done, cells);
    }
  }
}

// Microbatches of the TP degree that this round measures; those of earlier rounds an interrupted run did.
std::vector<int> LayerRounds::due_in(int round, int tp) const {
  std::vector<int> due;
  for (const int microbatch : request_.microbatches) {
    if (const auto end = ends_.find(tp); end != ends_.end() && microbatch >= end->second.microbatch) break;
    const auto found = journal_.rounds().find({tp, microbatch});
    const int done = found == journal_.rounds().end() ? 0 : static_cast<int>(found->second.size());
    if (done > round) continue;
    if (round < kRounds || !precise(typical(found->second))) due.push_back(microbatch);
  }
  return due;
}

void LayerRounds::measure_round(int round, int tp, const std::vector<int>& microbatches) {
  const bool may_end = request_.open_ended && round == 0;
  const double most_s = may_end ? request_.seconds / static_cast<double>(request_.tps.size())
                                : std::numeric_limits<double>::infinity();
  const CrowdBench::Series series = crowd_.measure(tp, microbatches, options_, most_s);
  for (size_t i = 0; i < series.cells.size(); ++i) {
    journal_.add(tp, microbatches[i], series.cells[i]);
    put_cell(tp, microbatches[i]);
  }
  if (series.cells.size() < microbatches.size())
    ends_[tp] = {microbatches[series.cells.size()], series.out_of_memory};
  if (profile_.times.empty()) return;
  sort_cells(profile_);
  save_profile_file(profile_, file_);
}

void LayerRounds::put_cell(int tp, int microbatch) {
  const StackBench::ByKind cell = typical(journal_.rounds().at({tp, microbatch}));
  for (size_t k = 0; k < kinds_.size(); ++k)
    put_time(profile_, {microbatch,
                        {.tp = tp},
                        kinds_[k],
                        cell[k].times,
                        cell[k].samples,
                        cell[k].outliers,
                        cell[k].relative_error});
}

std::vector<std::string> LayerRounds::notes() const {
  std::vector<std::string> notes;
  for (const auto& [tp, end] : ends_)
    notes.push_back(fmt::format(
        "TP degree {}: microbatches from {} on {}", tp, end.microbatch,
        end.out_of_memory ? "do not fit into memory" : "were not measured, the time was over (--seconds)"));
  return notes;
}

int LayerRounds::tell_all(const std::function<void(const std::string&)>& tell) {
  int cells = 0;
  for (const auto& [key, of_cell] : journal_.rounds()) {
    const StackBench::ByKind cell = typical(of_cell);
    std::string line = fmt::format("microbatch {:>3}  tp {}", key.second, key.first);
    for (size_t k = 0; k < kinds_.size(); ++k) {
      const LayerMeasurement& m = cell[k];
      line += fmt::format(" | {} {:.3f} + {:.3f} + {:.3f} ms, {} samples, +-{:.1f} %", to_string(kinds_[k]),
                          1e3 * m.times.forward_s, 1e3 * m.times.backward_s, 1e3 * m.times.update_s,
                          m.samples, 100 * m.relative_error);
    }
    tell(line);
    ++cells;
  }
  journal_.finish();
  return cells;
}

}  // namespace sailor
