// The number of available GPUs over time, for jobs on preemptible or shared nodes.
//
// Three file formats are recognized by their content:
// - CSV with a header `,Timestamp,TYPE_ZONE,...`: GPUs of each type in each zone; times in seconds, relative
//   to the first row
// - JSON, a list of {"Time": s, "GPUs": n}: GPUs of one type in one zone
// - CSV without a header, `s,n`: nodes of one type in one zone
//
// Value type. Times ascend from 0; of several rows with the same time the last one counts.
#pragma once

#include <string>
#include <vector>

namespace sailor {

struct TracePool {
  std::string gpu_type;  // empty if the file has none
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
  std::vector<Change> changes;  // never empty; consecutive entries differ
  double end_s = 0;             // end of the trace
};

// Throw InputError with file and line.
AvailabilityTrace load_trace(const std::string& path);
AvailabilityTrace parse_trace(const std::string& text, const std::string& file_name);

}  // namespace sailor
