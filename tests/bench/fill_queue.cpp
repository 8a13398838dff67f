// fill_queue PARTITION JOBS: submits that many jobs of 1 to 16 nodes and one to eleven hours, as many
// commands of sbatch would, but faster.
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: fill_queue PARTITION JOBS\n");
    return 2;
  }
  slurm_init(nullptr);
  std::string name = "fill", script = "#!/bin/sh\ntrue\n", path = "PATH=/usr/bin:/bin", directory = "/tmp",
              output = "/dev/null";
  char* environment[] = {path.data(), nullptr};
  const int jobs = std::atoi(argv[2]);
  for (int i = 0; i < jobs; ++i) {
    job_desc_msg_t job;
    slurm_init_job_desc_msg(&job);
    job.name = name.data();
    job.partition = argv[1];
    job.min_nodes = static_cast<uint32_t>(1 + i % 16);
    job.num_tasks = job.min_nodes;
    job.time_limit = static_cast<uint32_t>(60 + i % 600);
    job.user_id = getuid();
    job.group_id = getgid();
    job.work_dir = directory.data();
    job.std_out = output.data();
    job.script = script.data();
    job.environment = environment;
    job.env_size = 1;
    job.shared = 0;  // whole nodes
    submit_response_msg_t* answer = nullptr;
    if (slurm_submit_batch_job(&job, &answer) != SLURM_SUCCESS) {
      fprintf(stderr, "fill_queue: job %d: %s\n", i, slurm_strerror(errno));
      return 1;
    }
    slurm_free_submit_response_response_msg(answer);
  }
  return 0;
}
