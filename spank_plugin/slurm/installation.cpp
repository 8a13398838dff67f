#include "spank_plugin/slurm/installation.h"

#include <fmt/format.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "planner/process/subprocess.h"
#include "spank_plugin/slurm/releases.h"

namespace sailor {
namespace {

std::string setting(const char* value) {
  return value == nullptr ? "" : value;
}

std::string text_beside(const std::string& file, const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(file).parent_path() / name;
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// What a program prints, errors too, however it ends.
std::string output_of(const std::string& command) {
  try {
    return run_and_read({"sh", "-c", "{ " + command + "; } 2>&1; true"});
  } catch (const std::runtime_error&) {
    return "";
  }
}

}  // namespace

SlurmSettings read_slurm_settings() {
  slurm_conf_t* conf = nullptr;
  if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS) throw std::runtime_error(slurm_strerror(errno));
  SlurmSettings settings{.release = setting(conf->version),
                         .cluster = setting(conf->cluster_name),
                         .plugin_dir = setting(conf->plugindir),
                         .plugstack = setting(conf->plugstack),
                         .auth = setting(conf->authtype),
                         .select = setting(conf->select_type),
                         .controller_parameters = setting(conf->slurmctld_params),
                         .scheduler = setting(conf->schedtype),
                         .scheduler_parameters = setting(conf->sched_params),
                         .jobs_are_private = (conf->private_data & PRIVATE_DATA_JOBS) != 0,
                         .nodes_are_private = (conf->private_data & PRIVATE_DATA_NODES) != 0,
                         .reservations_are_private = (conf->private_data & PRIVATE_DATA_RESERVATIONS) != 0,
                         .cgroup_conf = text_beside(setting(conf->slurm_conf), "cgroup.conf")};
  free_settings(conf);
  return settings;
}

bool offers_mpi(const std::string& kind) {
  return output_of("srun --mpi=list").find(kind) != std::string::npos;
}

bool has_submit_option(const std::string& option) {
  return output_of("sbatch --help").find(option) != std::string::npos;
}

std::string run_on_node_text(const std::string& partition, const std::string& node,
                             const std::string& program) {
  return fmt::format("srun -p {} -w {} {}", partition, node, program);
}

}  // namespace sailor
