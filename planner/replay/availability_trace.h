// How many GPUs there were over time: what a job on preemptible or shared nodes has to live with.
//
// Three forms of file are read, told apart by what is in them:
//   - CSV with a header `,Timestamp,TYPE_ZONE,...`: GPUs of each type in each zone; times in seconds, of
//   which the
//     first is the start
//   - JSON, a list of {"Time": s, "GPUs": n}: GPUs of one type in one zone
//   - CSV without a header, `s,n`: nodes of one type in one zone
// Value type. Times ascend from 0; of several rows with one time the last counts.
#pragma once

#include <string>
#include <vector>

namespace sailor {

struct TracePool {
  std::string gpu_type;  // empty when the file does not say
  std::string zone;
};

struct AvailabilityTrace {
  std::string file;
  enum class Unit { gpus, nodes } unit = Unit::gpus;
  std::vector<TracePool> pools;
  struct Change {
    double at_s = 0;
    std::vector<int> count;  // by pool
  };
  std::vector<Change> changes;  // never empty; neighbours differ
  double end_s = 0;             // the file says nothing of later times
};

// Throw InputError with file and line.
AvailabilityTrace load_trace(const std::string& path);
AvailabilityTrace parse_trace(const std::string& text, const std::string& file_name);

}  // namespace sailor
