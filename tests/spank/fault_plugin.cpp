// The plugin with failures on demand, for tests/spank_matrix.sh: the product's own sources, and between them
// and Slurm a layer that fails where the file `fault` beside the library says, in one line:
//
//     HOOK CONTEXT FAULT
//
// throw: the plugin's part of the hook throws. error: it returns an error. unguarded: an error goes straight
// to Slurm. The hooks that the product has not are here too: a plugin that used them could fail in them.
#define slurm_spank_init product_init
#define slurm_spank_init_post_opt product_init_post_opt
#define allocator_init product_allocator_init
#define allocator_options_done product_allocator_options_done
#define local_init product_local_init
#define local_options_done product_local_options_done
#define remote_init product_remote_init
#include "spank_plugin/allocator.cpp"
#include "spank_plugin/local.cpp"
#include "spank_plugin/remote.cpp"
#undef allocator_init
#undef allocator_options_done
#undef local_init
#undef local_options_done
#undef remote_init
namespace sailor {
int allocator_init(spank_t spank);
int allocator_options_done(spank_t spank, int argc, char* const* argv);
int local_init(spank_t spank);
int local_options_done(spank_t spank, int argc, char* const* argv);
int remote_init(spank_t spank);
}  // namespace sailor
#include "spank_plugin/plugin.cpp"
#undef slurm_spank_init
#undef slurm_spank_init_post_opt

#include <dlfcn.h>

#include <fstream>
#include <stdexcept>
#include <string>

namespace {

const char* context_name() {
  switch (spank_context()) {
    case S_CTX_ALLOCATOR:
      return "allocator";
    case S_CTX_LOCAL:
      return "local";
    case S_CTX_REMOTE:
      return "remote";
    case S_CTX_SLURMD:
      return "slurmd";
    case S_CTX_JOB_SCRIPT:
      return "job_script";
    default:
      return "none";
  }
}

// The fault that is wanted here; empty = none.
std::string fault(const std::string& hook) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&product_init), &info) == 0) return "";
  std::string file = info.dli_fname;
  std::ifstream script(file.substr(0, file.rfind('/')) + "/fault");
  std::string wanted_hook, wanted_context, kind;
  script >> wanted_hook >> wanted_context >> kind;
  return wanted_hook == hook && wanted_context == context_name() ? kind : "";
}

// Fails as wanted, inside the product's guard; false: go on.
bool fails(const std::string& hook) {
  std::string kind = fault(hook);
  if (kind == "throw") throw std::runtime_error("wanted by the test");
  return kind == "error";
}

int unguarded(const char* hook) {
  return fault(hook) == "unguarded" ? -1 : 0;
}

}  // namespace

namespace sailor {
int allocator_init(spank_t spank) {
  return fails("init") ? -1 : product_allocator_init(spank);
}
int allocator_options_done(spank_t spank, int argc, char* const* argv) {
  return fails("init_post_opt") ? -1 : product_allocator_options_done(spank, argc, argv);
}
int local_init(spank_t spank) {
  return fails("init") ? -1 : product_local_init(spank);
}
int local_options_done(spank_t spank, int argc, char* const* argv) {
  return fails("init_post_opt") ? -1 : product_local_options_done(spank, argc, argv);
}
int remote_init(spank_t spank) {
  return fails("init") ? -1 : product_remote_init(spank);
}
}  // namespace sailor

extern "C" {
int slurm_spank_init(spank_t spank, int argc, char* argv[]) {
  return unguarded("init") != 0 ? -1 : product_init(spank, argc, argv);
}
int slurm_spank_init_post_opt(spank_t spank, int argc, char* argv[]) {
  return unguarded("init_post_opt") != 0 ? -1 : product_init_post_opt(spank, argc, argv);
}
#define HOOK(name)                                \
  int slurm_spank_##name(spank_t, int, char*[]) { \
    return unguarded(#name);                      \
  }
HOOK(job_prolog)
HOOK(local_user_init)
HOOK(user_init)
HOOK(task_init_privileged)
HOOK(task_init)
HOOK(task_post_fork)
HOOK(task_exit)
HOOK(job_epilog)
HOOK(slurmd_exit)
HOOK(exit)
}
