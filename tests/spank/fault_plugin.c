/* spank_fault.so: the plugin, and between it and Slurm a layer that fails where the file `fault` says
 * (fault.h).
 *
 * error: Slurm rejects the options. other_release: the planner's library has another interface. unguarded: an
 * error goes straight to Slurm. The hooks that the product has not are here too: a plugin that used them
 * could fail in them. */
#include "tests/spank/fault.h"

static int register_or_fail(spank_t spank, struct spank_option* option) {
  return wanted(&register_or_fail, "init", "error") ? ESPANK_ERROR : spank_option_register(spank, option);
}
#define slurm_spank_init product_init
#define slurm_spank_init_post_opt product_init_post_opt
#define spank_option_register register_or_fail
#include "spank_plugin/plugin.c"
#undef slurm_spank_init
#undef slurm_spank_init_post_opt

static int unguarded(const char* hook) {
  return wanted(&submission, hook, "unguarded") ? -1 : 0;
}

int slurm_spank_init(spank_t spank, int argc, char* argv[]) {
  return unguarded("init") != 0 ? -1 : product_init(spank, argc, argv);
}
int slurm_spank_init_post_opt(spank_t spank, int argc, char* argv[]) {
  if (wanted(&submission, "planner", "other_release")) submission.interface = 0;
  return unguarded("init_post_opt") != 0 ? -1 : product_init_post_opt(spank, argc, argv);
}
#define HOOK(name)                                                \
  int slurm_spank_##name(spank_t spank, int argc, char* argv[]) { \
    (void)spank, (void)argc, (void)argv;                          \
    return unguarded(#name);                                      \
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
