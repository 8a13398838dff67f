// sailor_planner.so: its functions for the plugin. Nothing is thrown into Slurm, which is C.
#include "spank_plugin/planner_library.h"

#include <cstdio>

#include "spank_plugin/planned_submission.h"
#include "spank_plugin/slurm/submit_process.h"

extern "C" void sailor_keep_script() {
  try {
    sailor::keep_script_on_stdin();
  } catch (...) {
    // The submission finds out that the script is gone.
  }
}

extern "C" int sailor_submit(spank_t spank, const sailor_submission* submission) {
  if (submission->interface != SAILOR_PLANNER_INTERFACE) {
    fprintf(stderr,
            "sailor: sailor_planner.so and the spank_sailor.so beside it are of different releases; install "
            "both again\n");
    return -1;
  }
  try {
    return sailor::submit(spank, *submission);
  } catch (...) {
    return -1;
  }
}
