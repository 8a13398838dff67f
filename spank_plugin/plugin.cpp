// spank_sailor.so: the hooks that Slurm calls, each handed on to the context that it is called in
// (contexts.h).
#include "spank_plugin/contexts.h"

extern "C" {
// Constants have internal linkage in C++ unless declared extern first.
extern const char plugin_name[];
extern const char plugin_type[];
extern const unsigned int plugin_version;
extern const unsigned int spank_plugin_version;
SPANK_PLUGIN(sailor, 1)

int slurm_spank_init(spank_t spank, int, char*[]) {
  switch (spank_context()) {
    case S_CTX_ALLOCATOR:
      return sailor::allocator_init(spank);
    case S_CTX_LOCAL:
      return sailor::local_init(spank);
    case S_CTX_REMOTE:
      return sailor::remote_init(spank);
    default:
      return ESPANK_SUCCESS;
  }
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char* argv[]) {
  switch (spank_context()) {
    case S_CTX_ALLOCATOR:
      return sailor::allocator_options_done(spank, argc, argv);
    case S_CTX_LOCAL:
      return sailor::local_options_done();
    default:
      return ESPANK_SUCCESS;
  }
}
}
