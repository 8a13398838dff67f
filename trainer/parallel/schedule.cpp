#include "trainer/parallel/schedule.h"

#include <algorithm>
#include <cstddef>

namespace sailor {
namespace {

int warm_up(int chunks, int group, int groups, int microbatches) {
  const int behind = groups - 1 - group;
  const int forwards = chunks == 1 ? behind : 2 * behind + (chunks - 1) * groups;
  return std::min(forwards, chunks * microbatches);
}

ScheduleStep step(ScheduleStep::Kind kind, int index, int chunks, int groups) {
  if (chunks == 1) return {kind, 0, index};
  const int round = groups * chunks;
  const int nth_chunk = index % round / groups;
  return {kind, kind == ScheduleStep::Kind::forward ? nth_chunk : chunks - 1 - nth_chunk,
          index / round * groups + index % groups};
}

}  // namespace

std::vector<ScheduleStep> schedule_steps(int chunks, int group, int groups, int microbatches,
                                         int weight_delay) {
  using Kind = ScheduleStep::Kind;
  const int ahead = warm_up(chunks, group, groups, microbatches), all = chunks * microbatches;
  std::vector<ScheduleStep> steps;
  steps.reserve(3 * static_cast<std::size_t>(all));
  for (int i = 0; i < all + ahead; ++i) {
    if (i < all) steps.push_back(step(Kind::forward, i, chunks, groups));
    if (i < ahead) continue;
    steps.push_back(step(Kind::backward, i - ahead, chunks, groups));
    if (weight_delay == kWholeBackward) continue;
    const int last = i - ahead, end = last + 1 == all ? all : last - weight_delay + 1;
    for (int m = std::max(0, last - weight_delay); m < end; ++m) steps.push_back({Kind::weights, 0, m});
  }
  return steps;
}

int most_in_flight(int chunks, int group, int groups, int microbatches) {
  return std::min(warm_up(chunks, group, groups, microbatches) + 1, chunks * microbatches);
}

}  // namespace sailor
