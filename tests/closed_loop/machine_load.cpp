#include "tests/closed_loop/machine_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace sailor::closed_loop {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of all processors, since the machine's start.
double busy_s() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  file >> name >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
  return (user + nice + system + irq + softirq + steal) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double own_s() {
  double total_s = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      total_s += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  return total_s;
}

}  // namespace

MachineLoad::MachineLoad() : busy_s_(busy_s()), own_s_(own_s()), at_s_(now_s()) {}

double MachineLoad::others() const {
  const double elapsed_s = std::max(1e-3, now_s() - at_s_);
  return std::max(0.0, (busy_s() - busy_s_) - (own_s() - own_s_)) / elapsed_s;
}

void wait_for_quiet(double share, double patience_s) {
  for (const double start_s = now_s(); now_s() - start_s < patience_s;) {
    const MachineLoad load;
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    if (load.others() < share) return;
  }
}

}  // namespace sailor::closed_loop
