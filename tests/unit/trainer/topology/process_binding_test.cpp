// Binding this process; each case in a child, so that the other tests keep their processors.
#include "trainer/topology/process_binding.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace sailor {
namespace {

bool holds_in_child(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

cpu_set_t processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return set;
}

int first_processor() {
  const cpu_set_t set = processors();
  int first = 0;
  while (!CPU_ISSET(first, &set)) ++first;
  return first;
}

TEST(ProcessBinding, TheProcessRunsOnlyThere) {
  EXPECT_TRUE(holds_in_child([] {
    const int cpu = first_processor();
    MachineTopology::Binding binding;
    binding.cpus = std::to_string(cpu);
    const std::string bound = bind_process(binding);
    const cpu_set_t set = processors();
    return bound == binding.cpus && CPU_COUNT(&set) == 1 && CPU_ISSET(cpu, &set);
  }));
}

TEST(ProcessBinding, ABindingThatStandsIsNotWidened) {
  EXPECT_TRUE(holds_in_child([] {
    const int cpu = first_processor();
    MachineTopology::Binding one, all;
    one.cpus = std::to_string(cpu);
    all.cpus = "0-1023";
    // Of all threads: a sanitizer has one of its own.
    if (bind_process(one) != one.cpus) return false;
    const std::string bound = bind_process(all);
    const cpu_set_t set = processors();
    return bound == one.cpus && CPU_COUNT(&set) == 1 && CPU_ISSET(cpu, &set);
  }));
}

TEST(ProcessBinding, WithoutAProcessorInCommonNothingChanges) {
  EXPECT_TRUE(holds_in_child([] {
    const cpu_set_t before = processors();
    MachineTopology::Binding binding;
    binding.cpus = "1000-1001";
    const std::string bound = bind_process(binding);
    const cpu_set_t after = processors();
    return bound.empty() && CPU_EQUAL(&before, &after);
  }));
}

}  // namespace
}  // namespace sailor
