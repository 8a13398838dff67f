// Writes the Trace Event Format of chrome://tracing and Perfetto: processes, their threads, and spans on
// them. About 100 bytes per span. Not thread-safe.
#pragma once

#include <string>

namespace sailor {

class TraceEvents {
 public:
  // Processes and threads are shown in ascending order of their numbers, under these names (any text).
  void name_process(int process, const std::string& name);
  void name_thread(int process, int thread, const std::string& name);
  // `name` and `category` are plain words. Times are kept to the nanosecond.
  void span(int process, int thread, const std::string& name, const char* category, double start_s,
            double end_s);

  std::string json() const { return out_ + "\n]}\n"; }

 private:
  void name(const char* what, int process, int thread, const std::string& name, int order);
  void append(const std::string& event);

  std::string out_ = R"({"displayTimeUnit":"ms","traceEvents":[)";
  bool first_ = true;
};

}  // namespace sailor
