#include "planner/profile/disturbed_times.h"

#include <algorithm>
#include <span>
#include <vector>

namespace sailor {
namespace {

constexpr double kNoticed = 0.01;  // of a cell's time

struct MeasuredCell {
  int microbatch;
  LayerProfile::Cell* cell;
};

// `larger` is ascending, and in order.
double undisturbed_s(const MeasuredCell& own, std::span<const MeasuredCell> larger, size_t layer,
                     double LayerTimes::*pass) {
  const double own_s = own.cell->at(layer).*pass, next_s = larger[0].cell->at(layer).*pass;
  if (own_s <= next_s || larger.size() < 2) return std::min(own_s, next_s);
  const double per_sequence_s =
      (larger[1].cell->at(layer).*pass - next_s) / (larger[1].microbatch - larger[0].microbatch);
  const double line_s = next_s - per_sequence_s * (larger[0].microbatch - own.microbatch);
  return std::clamp(line_s, next_s * own.microbatch / larger[0].microbatch, next_s);
}

}  // namespace

void replace_disturbed_times(LayerProfile& profile) {
  for (const ReplicaShape shape : profile.shapes()) {
    std::vector<MeasuredCell> cells;  // by microbatch
    for (auto& [key, cell] : profile.cells)
      if (key.second == shape) cells.push_back({key.first, &cell});
    for (size_t i = cells.size() - 1; i-- > 0;) {
      const std::span larger = std::span(cells).subspan(i + 1);
      double all_s = 0, replaced_s = 0, doubt_s = 0;
      for (size_t layer = 0; layer < cells[i].cell->size(); ++layer)
        for (double LayerTimes::*pass : {&LayerTimes::forward_s, &LayerTimes::backward_s}) {
          double& time_s = cells[i].cell->at(layer).*pass;
          const double better_s = undisturbed_s(cells[i], larger, layer, pass);
          if (better_s < time_s) doubt_s += larger[0].cell->at(layer).*pass - better_s;
          replaced_s += time_s - better_s;
          all_s += better_s;
          time_s = better_s;
        }
      if (replaced_s <= kNoticed * all_s) continue;
      profile.estimated.insert({cells[i].microbatch, shape});
      profile.uncertainty = std::max(profile.uncertainty, doubt_s / all_s);
    }
  }
}

}  // namespace sailor
