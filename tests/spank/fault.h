/* Failures on demand, for tests/spank_matrix.sh: the file `fault` beside the library says in one line what
 * fails where,
 *
 *     HOOK CONTEXT FAULT
 *
 * C and C++. */
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr; C++ has it */
#endif

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "spank_plugin/slurm/spank_api.h"

static inline const char* context_name(void) {
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

/* Is this fault wanted here? `self`: an address in the library. */
static inline int wanted(const void* self, const char* hook, const char* fault) {
  char path[4096], line[256] = "", expected[256];
  Dl_info info;
  if (dladdr(self, &info) == 0) return 0;
  const char* slash = strrchr(info.dli_fname, '/');
  snprintf(path, sizeof path, "%.*s/fault", slash == NULL ? 0 : (int)(slash - info.dli_fname),
           info.dli_fname);
  FILE* file = fopen(path, "re");
  if (file == NULL) return 0;
  if (fgets(line, sizeof line, file) == NULL) line[0] = '\0';
  fclose(file);
  snprintf(expected, sizeof expected, "%s %s %s\n", hook, context_name(), fault);
  return strcmp(line, expected) == 0;
}
