// Runs a function in a forked process, so that what it takes of CPU and memory is its own.
#pragma once

#include <functional>
#include <string>

namespace sailor::bench {

struct ChildOutput {
  std::string text;   // what the function returned
  double rss_mb = 0;  // peak of the process
};
// Throws std::runtime_error when the process can not be made or does not end well.
ChildOutput run_in_child(const std::function<std::string()>& function);

// CPU time of this process, all of its threads.
double process_cpu_s();

}  // namespace sailor::bench
