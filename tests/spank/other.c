/* A second SPANK plugin, for the tests: --other-image=NAME puts OTHER_IMAGE into the environment of the job's tasks, and a submission
 * runs the command in OTHER_BEFORE_SUBMIT in its last moment. */
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SPANK_PLUGIN(other, 1)

static char image[64];

static int take(int value, const char *argument, int remote) {
  (void)value;
  (void)remote;
  snprintf(image, sizeof image, "%s", argument);
  return 0;
}

int slurm_spank_init(spank_t spank, int argc, char **argv) {
  (void)argc;
  (void)argv;
  struct spank_option option = {"other-image", "NAME", "[other] image of the job", 1, 0, take};
  return spank_option_register(spank, &option);
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv) {
  (void)spank;
  (void)argc;
  (void)argv;
  const char *set = getenv("OTHER_BEFORE_SUBMIT");
  if (set == NULL || spank_remote(spank) == 1) return 0;
  char *command = strdup(set);
  unsetenv("OTHER_BEFORE_SUBMIT"); /* the command may submit as well */
  int rc = system(command);
  free(command);
  return rc == 0 ? 0 : -1;
}

int slurm_spank_task_init(spank_t spank, int argc, char **argv) {
  (void)argc;
  (void)argv;
  return image[0] == '\0' ? 0 : spank_setenv(spank, "OTHER_IMAGE", image, 1);
}
