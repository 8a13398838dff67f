#include "spank_plugin/slurm/inherited_options.h"

#include <stdlib.h>
#include <string.h>

extern char** environ;

static void unset_variables_with(const char* prefix) {
  char name[256];
  char** entry = environ;
  while (entry != NULL && *entry != NULL) {
    const size_t length = strcspn(*entry, "=");
    if (length < sizeof name && strncmp(*entry, prefix, strlen(prefix)) == 0) {
      memcpy(name, *entry, length);
      name[length] = '\0';
      unsetenv(name); /* moves the later entries down by one */
    } else {
      ++entry;
    }
  }
}

void sailor_forget_inherited(int starts_jobs_only) {
  const char* job = getenv("SLURM_JOB_ID");
  unset_variables_with("_SLURM_SPANK_OPTION_sailor_");
  unset_variables_with("SLURM_SPANK__SLURM_SPANK_OPTION_sailor_");
  if (starts_jobs_only || job == NULL || *job == '\0') unset_variables_with("SLURM_SPANK_SAILOR_");
}
