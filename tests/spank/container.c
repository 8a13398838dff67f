/* A stand-in for a container plugin such as pyxis: --container-image=DIRECTORY runs every task of a job under
 * another root directory, a copy-free view of the node's own with the file IN_CONTAINER in DIRECTORY/mnt.
 * Arguments of its line in plugstack.conf:
 *
 *     record=FILE   gets a line per task: JOB STEP IMAGE, with - for none; STEP is negative for the batch
 * script script
 */
#define _GNU_SOURCE
#include <limits.h>
#include <sched.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

SPANK_PLUGIN(container, 1)

static char image[PATH_MAX];

static int take(int value, const char* argument, int remote) {
  (void)value;
  (void)remote;
  snprintf(image, sizeof image, "%s", argument);
  return 0;
}

int slurm_spank_init(spank_t spank, int argc, char** argv) {
  (void)argc;
  (void)argv;
  struct spank_option option = {
      "container-image", "DIRECTORY", "[container] root directory of the tasks", 1, 0, take};
  return spank_option_register(spank, &option);
}

static void record(spank_t spank, const char* file) {
  uint32_t job = 0, step = 0;
  char line[PATH_MAX + 64];
  spank_get_item(spank, S_JOB_ID, &job);
  spank_get_item(spank, S_JOB_STEPID, &step);
  snprintf(line, sizeof line, "%u %d %s\n", job, (int)step, image[0] == '\0' ? "-" : image);
  FILE* out = fopen(file, "ae");
  if (out == NULL) return;
  fputs(line, out); /* one write, appended as a whole */
  fclose(out);
}

int slurm_spank_task_init_privileged(spank_t spank, int argc, char** argv) {
  for (int i = 0; i < argc; ++i)
    if (strncmp(argv[i], "record=", 7) == 0) record(spank, argv[i] + 7);
  if (image[0] == '\0') return 0;
  char mark[PATH_MAX + 32], here[PATH_MAX];
  if (getcwd(here, sizeof here) == NULL) snprintf(here, sizeof here, "/");
  snprintf(mark, sizeof mark, "%s/mnt", image);
  FILE* file = NULL;
  if (unshare(CLONE_NEWNS) != 0 || mount("", "/", NULL, MS_REC | MS_SLAVE, NULL) != 0 ||
      mount("/", image, NULL, MS_BIND | MS_REC, NULL) != 0 || mount("tmpfs", mark, "tmpfs", 0, NULL) != 0)
    return slurm_error("container: cannot make the root directory %s: %m", image), -1;
  snprintf(mark, sizeof mark, "%s/mnt/IN_CONTAINER", image);
  file = fopen(mark, "we");
  if (file == NULL || fclose(file) != 0 || chroot(image) != 0 || chdir(here) != 0)
    return slurm_error("container: cannot enter %s: %m", image), -1;
  return 0;
}
