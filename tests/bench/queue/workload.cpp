#include "tests/bench/queue/workload.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <random>

#include "planner/spec/error.h"
#include "tests/bench/scenario.h"

namespace sailor::bench {
namespace {

constexpr double kMostOverestimated = 5;

double column(const std::vector<std::string>& cells, size_t index, const Where& where) {
  char* end = nullptr;
  const double value = index < cells.size() ? std::strtod(cells[index].c_str(), &end) : 0;
  if (end == nullptr || end == cells[index].c_str() || *end != '\0' || !(value >= 0))
    throw InputError(where, fmt::format("column {} must be a number >= 0", index + 1));
  return value;
}

size_t find_column(const std::vector<std::string>& header, const char* name, const std::string& path) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) throw InputError({path, 1}, fmt::format("there is no column {}", name));
  return static_cast<size_t>(found - header.begin());
}

// [0, 1), the same with every standard library.
double uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

}  // namespace

std::vector<TraceJob> load_trace(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw InputError({path}, "cannot be read");
  std::vector<TraceJob> jobs;
  std::array<char, 4096> buffer{};
  size_t submit = 0, duration = 0, gpus = 0;
  for (int line = 1; gzgets(file.get(), buffer.data(), buffer.size()) != nullptr; ++line) {
    std::string text = buffer.data();
    text.erase(text.find_last_not_of("\r\n") + 1);
    const std::vector<std::string> cells = split_csv(text);
    if (line == 1) {
      submit = find_column(cells, "submit_s", path);
      duration = find_column(cells, "duration_s", path);
      gpus = find_column(cells, "gpus", path);
      continue;
    }
    const Where where{path, line};
    jobs.push_back({column(cells, submit, where), column(cells, duration, where),
                    static_cast<int>(column(cells, gpus, where))});
  }
  if (jobs.empty()) throw InputError({path}, "has no jobs");
  return jobs;
}

std::vector<NodeKind> kinds_of(const Snapshot& cluster) {
  std::vector<NodeKind> kinds;
  for (const SnapshotNode& node : cluster.nodes) {
    auto kind = std::find_if(kinds.begin(), kinds.end(),
                             [&](const NodeKind& other) { return other.gpu_type == node.gpu_type; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {node.gpu_type, node.gpus, {}});
    if (kind->gpus != node.gpus)
      throw InputError({cluster.file},
                       fmt::format("nodes of type {} must have the same number of GPUs", node.gpu_type));
    kind->names.push_back(node.name);
  }
  return kinds;
}

double gpus_of(const std::vector<NodeKind>& kinds) {
  double gpus = 0;
  for (const NodeKind& kind : kinds) gpus += kind.nodes() * kind.gpus;
  return gpus;
}

int64_t rounded_limit_s(double expected_s) {
  for (const int hours : {1, 2, 4, 8, 12, 24, 48})
    if (expected_s <= hours * 3600.0) return hours * int64_t{3600};
  return kLongestLimit_s;
}

std::vector<BackgroundJob> draw_background(std::span<const TraceJob> trace,
                                           const std::vector<NodeKind>& kinds, double gpu_s, double begin_s,
                                           double end_s, uint64_t seed) {
  // Where the trace is dense: without the few jobs long before and after the others.
  trace = trace.subspan(trace.size() / 1000, trace.size() * 989 / 1000);
  std::mt19937_64 random(seed);
  int nodes = 0;
  for (const NodeKind& kind : kinds) nodes += kind.nodes();
  const double first_s = trace.front().submit_s, trace_s = trace.back().submit_s - first_s;
  const double turn = uniform(random);  // of the trace, before the study begins
  std::vector<BackgroundJob> jobs;
  for (double drawn_gpu_s = 0; drawn_gpu_s < gpu_s;) {
    const TraceJob& from = trace[random() % trace.size()];
    BackgroundJob job;
    auto left = static_cast<int>(uniform(random) * nodes);
    while (left >= kinds[job.kind].nodes()) left -= kinds[job.kind++].nodes();
    const NodeKind& kind = kinds[job.kind];
    job.nodes = std::clamp((from.gpus + kind.gpus - 1) / kind.gpus, 1, kind.nodes());
    const double factor = std::pow(kMostOverestimated, uniform(random));
    job.duration_s = std::clamp<int64_t>(std::llround(from.duration_s), 1, kLongestLimit_s);
    job.limit_s = rounded_limit_s(factor * static_cast<double>(job.duration_s));
    const double at = std::fmod((from.submit_s - first_s) / std::max(1.0, trace_s) + turn, 1);
    job.submit_s = std::llround(begin_s + at * (end_s - begin_s));
    drawn_gpu_s += static_cast<double>(job.duration_s) * job.nodes * kind.gpus;
    jobs.push_back(job);
  }
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const BackgroundJob& a, const BackgroundJob& b) { return a.submit_s < b.submit_s; });
  return jobs;
}

}  // namespace sailor::bench
