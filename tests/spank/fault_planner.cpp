// The planner's library with failures on demand (fault.h), inside its own guard: throw, error.
#include <stdexcept>

#include "spank_plugin/planned_submission.h"
#include "tests/spank/fault.h"

namespace sailor {
namespace {

int submit_or_fail(spank_t spank, const sailor_submission& submission) {
  const void* self = reinterpret_cast<const void*>(&submit_or_fail);
  if (wanted(self, "init_post_opt", "throw")) throw std::runtime_error("wanted by the test");
  return wanted(self, "init_post_opt", "error") ? -1 : submit(spank, submission);
}

}  // namespace
}  // namespace sailor

#define submit submit_or_fail
#include "spank_plugin/planner_library.cpp"
#undef submit
