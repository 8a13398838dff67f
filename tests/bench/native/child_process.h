// Runs a function in a forked process, to measure its own CPU time and memory.
#pragma once

#include <functional>
#include <string>

namespace sailor::bench {

struct ChildOutput {
  std::string text;   // what the function returned
  double rss_mb = 0;  // peak of the process
};
// Throws std::runtime_error when the process cannot be created or fails.
ChildOutput run_in_child(const std::function<std::string()>& function);

// CPU time of this process over all of its threads.
double process_cpu_s();

}  // namespace sailor::bench
