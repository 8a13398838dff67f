#include "tests/fake_nccl/fault_script.h"

#include <utility>

namespace sailor::fake {
namespace {

std::mutex violations_mutex;
std::vector<std::string> violations;

}  // namespace

void FaultScript::set(std::vector<Fault> faults) {
  const std::lock_guard lock(mutex_);
  faults_.clear();
  for (Fault& fault : faults) faults_.push_back({std::move(fault)});
}

void FaultScript::let_go() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
  ++released_;
  changed_.notify_all();
}

std::optional<Fault> FaultScript::next(const std::string& call, int device) {
  const std::lock_guard lock(mutex_);
  for (Armed& armed : faults_) {
    const Fault& fault = armed.fault;
    if (fault.call != call || (fault.device >= 0 && fault.device != device)) continue;
    if (armed.seen++ >= fault.after) return fault;
  }
  return std::nullopt;
}

void FaultScript::hang(const std::function<bool()>& over) {
  std::unique_lock lock(mutex_);
  const int before = released_;
  while (released_ == before && !(over && over())) changed_.wait_for(lock, std::chrono::milliseconds(2));
}

FaultScript& script() {
  static auto* const the_script = new FaultScript;  // threads that hang use it to the end
  return *the_script;
}

std::vector<std::string> take_violations() {
  const std::lock_guard lock(violations_mutex);
  return std::exchange(violations, {});
}

void report_violation(const std::string& text) {
  const std::lock_guard lock(violations_mutex);
  violations.push_back(text);
}

}  // namespace sailor::fake
