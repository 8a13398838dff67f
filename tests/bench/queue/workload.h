// What is submitted to the cluster of a queue study: the background jobs of others, from a measured trace,
// and trainings. Everything is drawn by a seed, the same for all policies. Times are seconds from the start
// of the study. Value types; pure but for load_trace().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "planner/spec/snapshot.h"

namespace sailor::bench {

struct TraceJob {
  double submit_s = 0, duration_s = 0;
  int gpus = 0;
};
// A CSV file with the columns submit_s,duration_s,gpus (and others), plain or compressed with gzip, in the
// order of submission. Throws InputError.
std::vector<TraceJob> load_trace(const std::string& path);

// Nodes of one GPU type.
struct NodeKind {
  std::string gpu_type;
  int gpus = 0;  // of a node
  std::vector<std::string> names;

  int nodes() const { return static_cast<int>(names.size()); }
};
std::vector<NodeKind> kinds_of(const Snapshot& cluster);
double gpus_of(const std::vector<NodeKind>& kinds);

// The time limit that a user asks for who expects this duration, as users round: 1, 2, 4, 8, 12, 24, 48 or 72
// h.
int64_t rounded_limit_s(double expected_s);
inline constexpr int64_t kLongestLimit_s = 72 * 3600;

struct BackgroundJob {
  int64_t submit_s = 0, duration_s = 0, limit_s = 0;
  size_t kind = 0;
  int nodes = 0;  // whole ones, all of one kind
};
// Jobs drawn from the trace until they hold `gpu_s` GPU seconds, submitted as in the trace, whose length is
// scaled to [begin_s, end_s] and which begins at a random point. The kind of each is drawn by number of
// nodes; users overestimate durations by a factor of up to 5, drawn log-uniformly. Needs a thousand jobs or
// more.
std::vector<BackgroundJob> draw_background(std::span<const TraceJob> trace,
                                           const std::vector<NodeKind>& kinds, double gpu_s, double begin_s,
                                           double end_s, uint64_t seed);

}  // namespace sailor::bench
