/* spank_sailor.so: what every sbatch, salloc, srun and slurmstepd loads. It registers the --sailor-* options
 * with Slurm. Only a process that was given one opens the planner (planner_library.h), from the directory of
 * this file. Plain commands and the processes of root open no file and send no RPC.
 *
 * Slurm never sees a failure of a hook: it would drain the node in slurmstepd if the plugin is `required`,
 * and submit a planned job without its plan if it is `optional`. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spank_plugin/planner_library.h"
#include "spank_plugin/slurm/inherited_options.h"

SPANK_PLUGIN(sailor, 1)

int slurm_spank_init(spank_t spank, int argc, char* argv[]);
int slurm_spank_init_post_opt(spank_t spank, int argc, char* argv[]);

/* SPANK's callbacks carry no context pointer: one submission per process. */
static struct sailor_submission submission = {.interface = SAILOR_PLANNER_INTERFACE};

static int is_planned(void) {
  for (int i = 0; i < sailor_option_count; ++i)
    if (submission.values[i] != NULL) return 1;
  return 0;
}

static int collect(int index, const char* value, int remote) {
  if (remote) return 0;
  if (index < 0 || index >= sailor_option_count) return -1;
  submission.values[index] = strdup(value == NULL ? "" : value); /* kept to the end of the process */
  return submission.values[index] == NULL ? -1 : 0;
}

static void register_options(spank_t spank) {
  for (int i = 0; i < sailor_option_count; ++i) {
    /* Slurm copies the texts; the structure wants non-const pointers all the same. */
    struct spank_option option = {(char*)sailor_options[i].name,
                                  (char*)sailor_options[i].argument,
                                  (char*)sailor_options[i].usage,
                                  sailor_options[i].argument != NULL,
                                  i,
                                  collect};
    spank_option_register(spank, &option);
  }
}

/* Of sbatch and salloc, which are the same to SPANK. */
static enum sailor_program allocator(void) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return SAILOR_SBATCH;
  path[length] = '\0';
  const char* slash = strrchr(path, '/');
  return strncmp(slash == NULL ? path : slash + 1, "salloc", strlen("salloc")) == 0 ? SAILOR_SALLOC
                                                                                    : SAILOR_SBATCH;
}

/* A function of the planner's library; null, with the reason on standard error, if it cannot be had. */
static void* planner_function(const char* name) {
  static void* library;
  char path[4096];
  Dl_info self;
  if (library == NULL) {
    if (dladdr(&submission, &self) == 0) return NULL;
    const char* slash = strrchr(self.dli_fname, '/');
    const int directory = slash == NULL ? 0 : (int)(slash - self.dli_fname + 1);
    if (snprintf(path, sizeof path, "%.*ssailor_planner.so", directory, self.dli_fname) >= (int)sizeof path)
      return NULL;
    library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  }
  void* function = library == NULL ? NULL : dlsym(library, name);
  if (function == NULL) fprintf(stderr, "sailor: cannot load the planner: %s\n", dlerror());
  return function;
}

/* Is one of our options among this process's arguments? Slurm has parsed none yet. */
static int named_on_command_line(void) {
  static const char prefix[] = "--sailor-";
  int found = 0;
  char* word = NULL;
  size_t size = 0;
  FILE* words = fopen("/proc/self/cmdline", "re");
  while (words != NULL && !found && getdelim(&word, &size, '\0', words) > 0)
    found = strncmp(word, prefix, strlen(prefix)) == 0;
  if (words != NULL) fclose(words);
  free(word);
  return found;
}

/* sbatch reads a script on standard input before it looks at our options, and a planned one is needed again.
 * A pipe is only touched when an option on the command line says that the job is planned. */
static void look_at_standard_input(void) {
  submission.stdin_offset = (long)lseek(STDIN_FILENO, 0, SEEK_CUR);
  if (submission.stdin_offset >= 0 || errno != ESPIPE || isatty(STDIN_FILENO) || !named_on_command_line())
    return;
  sailor_keep_script_function* keep_script =
      (sailor_keep_script_function*)planner_function("sailor_keep_script");
  if (keep_script != NULL) keep_script();
  submission.stdin_offset = (long)lseek(STDIN_FILENO, 0, SEEK_CUR);
}

int slurm_spank_init(spank_t spank, int argc, char* argv[]) {
  (void)argc, (void)argv;
  const spank_context_t context = spank_context();
  const int submits = context == S_CTX_ALLOCATOR || context == S_CTX_LOCAL;
  if (!submits && context != S_CTX_REMOTE) return ESPANK_SUCCESS;
  /* Also in slurmstepd, which complains about options of the submission that it does not know. */
  register_options(spank);
  if (!submits) return ESPANK_SUCCESS;
  submission.program = context == S_CTX_LOCAL ? SAILOR_SRUN : allocator();
  sailor_forget_inherited(submission.program != SAILOR_SRUN);
  if (submission.program == SAILOR_SBATCH) look_at_standard_input(); /* after the options are registered */
  return ESPANK_SUCCESS;
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char* argv[]) {
  const spank_context_t context = spank_context();
  if ((context != S_CTX_ALLOCATOR && context != S_CTX_LOCAL) || !is_planned()) return ESPANK_SUCCESS;
  submission.argc = argc;
  submission.argv = argv;
  sailor_submit_function* submit = (sailor_submit_function*)planner_function("sailor_submit");
  if (submit == NULL || submit(spank, &submission) != 0) {
    fputs("sailor: nothing was submitted\n", stderr);
    fflush(NULL);
    _exit(1);
  }
  return ESPANK_SUCCESS;
}
