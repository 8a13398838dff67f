/* A second SPANK plugin, for the tests: --other-image=NAME puts OTHER_IMAGE into the environment of the job's tasks. */
#include <slurm/spank.h>
#include <stdio.h>
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

int slurm_spank_task_init(spank_t spank, int argc, char **argv) {
  (void)argc;
  (void)argv;
  return image[0] == '\0' ? 0 : spank_setenv(spank, "OTHER_IMAGE", image, 1);
}
