#include "planner/simulator/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace sailor {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

void check(std::span<const StageTimes> stages, int microbatches) {
  if (stages.empty()) throw std::invalid_argument("one_f_one_b: no stages");
  if (microbatches < 1) throw std::invalid_argument("one_f_one_b: microbatches must be at least 1");
  for (size_t i = 0; i < stages.size(); ++i)
    for (double duration :
         {stages[i].forward_s, stages[i].backward_s, stages[i].send_forward_s, stages[i].send_backward_s})
      if (!std::isfinite(duration) || duration < 0)
        throw std::invalid_argument("one_f_one_b: stage " + std::to_string(i) +
                                    ": a duration is negative or not finite");
}

// Where one stage stands in its fixed order of operations.
struct Progress {
  int forwards = 0;   // done
  int backwards = 0;  // done
  int warm_up = 0;    // forwards before the first backward
  double free_s = 0;  // when its device is free
  double busy_s = 0;
  double forward_link_free_s = 0;   // the link to the next stage carries one message at a time
  double backward_link_free_s = 0;  // the link to the previous stage

  bool next_is_forward(int microbatches) const {
    return forwards < microbatches && forwards <= backwards + warm_up;
  }
};

// Every operation of every microbatch.
Timeline play(std::span<const StageTimes> stages, int microbatches, bool with_events) {
  const int P = static_cast<int>(stages.size());
  const size_t M = static_cast<size_t>(microbatches);
  std::vector<Progress> progress(stages.size());
  for (int i = 0; i < P; ++i) progress[i].warm_up = std::min(P - 1 - i, microbatches);

  // When the input of (stage, microbatch) has arrived. Local inputs are there from the start; order on the
  // stage does the rest.
  std::vector<double> activation_at(stages.size() * M, kUnknown);
  std::vector<double> gradient_at(stages.size() * M, kUnknown);
  std::fill_n(activation_at.begin(), M, 0.0);
  std::fill_n(gradient_at.begin() + static_cast<ptrdiff_t>((stages.size() - 1) * M), M, 0.0);

  Timeline timeline;
  std::vector<std::vector<TimelineEvent>> events(with_events ? stages.size() : 0);
  // Runs a stage until an input is missing. Each neighbour that got something new is looked at again, so
  // every operation is attempted a constant number of times.
  std::vector<int> runnable;
  for (int i = P - 1; i >= 0; --i) runnable.push_back(i);
  while (!runnable.empty()) {
    const int i = runnable.back();
    runnable.pop_back();
    Progress& p = progress[i];
    const StageTimes& times = stages[i];
    bool fed_next = false, fed_previous = false;
    while (p.backwards < microbatches) {
      const bool forward = p.next_is_forward(microbatches);
      const int m = forward ? p.forwards : p.backwards;
      const double input_s = forward ? activation_at[i * M + m] : gradient_at[i * M + m];
      if (input_s == kUnknown) break;
      const double duration_s = forward ? times.forward_s : times.backward_s;
      const double start_s = std::max(p.free_s, input_s);
      p.free_s = start_s + duration_s;
      p.busy_s += duration_s;
      if (with_events)
        events[i].push_back({forward ? TimelineEvent::Kind::forward : TimelineEvent::Kind::backward, i, m,
                             start_s, p.free_s});
      if (forward) {
        ++p.forwards;
        if (i + 1 < P) {
          p.forward_link_free_s = std::max(p.free_s, p.forward_link_free_s) + times.send_forward_s;
          activation_at[(i + 1) * M + m] = p.forward_link_free_s;
          fed_next = true;
        }
      } else {
        ++p.backwards;
        if (i > 0) {
          p.backward_link_free_s = std::max(p.free_s, p.backward_link_free_s) + times.send_backward_s;
          gradient_at[(i - 1) * M + m] = p.backward_link_free_s;
          fed_previous = true;
        }
      }
    }
    if (fed_previous) runnable.push_back(i - 1);
    if (fed_next) runnable.push_back(i + 1);
  }

  for (const Progress& p : progress) {
    timeline.stage_end_s.push_back(p.free_s);
    timeline.stage_busy_s.push_back(p.busy_s);
    timeline.makespan_s = std::max(timeline.makespan_s, p.free_s);
  }
  for (auto& of_stage : events)
    timeline.events.insert(timeline.events.end(), of_stage.begin(), of_stage.end());
  return timeline;
}

}  // namespace

Timeline one_f_one_b(std::span<const StageTimes> stages, int microbatches, bool with_events) {
  check(stages, microbatches);
  // Warm-up and cool-down take as many microbatches as there are stages; the rate is measured well beyond
  // them.
  const int exact = std::max(kExactMicrobatches, 8 * static_cast<int>(stages.size()));
  if (with_events || microbatches <= exact) return play(stages, microbatches, with_events);
  // Warm-up and cool-down are the same however many microbatches lie between them; the steady state repeats.
  const Timeline half = play(stages, exact / 2, false);
  Timeline timeline = play(stages, exact, false);
  const double more =
      static_cast<double>(microbatches - kExactMicrobatches) / (kExactMicrobatches - kExactMicrobatches / 2);
  timeline.makespan_s = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    timeline.stage_end_s[i] += more * (timeline.stage_end_s[i] - half.stage_end_s[i]);
    timeline.stage_busy_s[i] = microbatches * (stages[i].forward_s + stages[i].backward_s);
    timeline.makespan_s = std::max(timeline.makespan_s, timeline.stage_end_s[i]);
  }
  return timeline;
}

}  // namespace sailor
