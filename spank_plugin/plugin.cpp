// spank_sailor.so: the hooks that Slurm calls, each forwarded to its context (contexts.h), and the only place
// that handles their failures. Slurm never sees a failure of a hook: it would drain the node in slurmstepd if
// the plugin is `required`, and submit a planned job without its plan if it is `optional`.
#include <unistd.h>

#include <cstdio>

#include "planner/spec/error.h"
#include "spank_plugin/contexts.h"
#include "spank_plugin/spank_options.h"

namespace {

// Ends a planned submission that a hook could not do its part for. Plain commands and the processes of root
// go on without us.
int after_failure(const char* hook) {
  spank_context_t context = spank_context();
  bool submits = context == S_CTX_ALLOCATOR || context == S_CTX_LOCAL;
  if (submits && !sailor::given_options().empty()) {
    fprintf(stderr, "sailor: %s failed; nothing was submitted\n", hook);
    fflush(nullptr);
    _exit(sailor::kFailed);
  }
  return ESPANK_SUCCESS;
}

// Nothing is thrown into Slurm, which is C.
template <typename Body>
int guarded(const char* hook, Body body) noexcept {
  try {
    return body() == ESPANK_SUCCESS ? ESPANK_SUCCESS : after_failure(hook);
  } catch (...) {
    return after_failure(hook);
  }
}

}  // namespace

extern "C" {
// Constants have internal linkage in C++ unless declared extern first.
extern const char plugin_name[];
extern const char plugin_type[];
extern const unsigned int plugin_version;
extern const unsigned int spank_plugin_version;
SPANK_PLUGIN(sailor, 1)

int slurm_spank_init(spank_t spank, int, char*[]) {
  return guarded("slurm_spank_init", [&] {
    switch (spank_context()) {
      case S_CTX_ALLOCATOR:
        return sailor::allocator_init(spank);
      case S_CTX_LOCAL:
        return sailor::local_init(spank);
      case S_CTX_REMOTE:
        return sailor::remote_init(spank);
      default:
        return static_cast<int>(ESPANK_SUCCESS);
    }
  });
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char* argv[]) {
  return guarded("slurm_spank_init_post_opt", [&] {
    switch (spank_context()) {
      case S_CTX_ALLOCATOR:
        return sailor::allocator_options_done(spank, argc, argv);
      case S_CTX_LOCAL:
        return sailor::local_options_done(spank, argc, argv);
      default:
        return static_cast<int>(ESPANK_SUCCESS);
    }
  });
}
}
