// sailor-doctor: is this installation sound, and what to do if not.
//
// Here: Slurm answers, the plugin is in its stack and built for it, the site's files fit the cluster, jobs
// can be launched. With --nodes, the same of the compute nodes: one free node of every GPU type runs
// `sailor-doctor --here` through srun.
#include <fmt/format.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "planner/cli/external.h"
#include "planner/spec/error.h"
#include "planner/spec/site_config.h"
#include "spank_plugin/doctor/plugstack.h"
#include "spank_plugin/doctor/program_checks.h"
#include "spank_plugin/doctor/site_checks.h"
#include "spank_plugin/slurm/live_cluster.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

constexpr char kUsage[] =
    "usage: sailor doctor [--config FILE] [--nodes | --here]\n"
    "\n"
    "Says whether this installation of Sailor is sound, and what to do about what is not.\n"
    "  --config FILE  site config (default: $SAILOR_CONFIG, else /etc/sailor/sailor.yaml)\n"
    "  --nodes        look at the compute nodes too: one free node of every GPU type, through srun\n"
    "  --here         only what concerns this node; for other programs: a line per finding, tabs between "
    "fields\n"
    "Exit code 0: no problems (there may be warnings); 1: problems; 2: bad usage.\n";

struct Arguments {
  bool help = false, nodes = false, here = false;
  std::string config = site_config_path();
};

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "-h" || word == "--help") {
      arguments.help = true;
    } else if (word == "--nodes") {
      arguments.nodes = true;
    } else if (word == "--here") {
      arguments.here = true;
    } else if (word == "--config" && i + 1 < argc) {
      arguments.config = argv[++i];
    } else if (word.starts_with("--config=")) {
      arguments.config = word.substr(9);
    } else {
      throw InputError(word + ": unknown argument (see `sailor doctor --help`)");
    }
  }
  if (arguments.nodes && arguments.here) throw InputError("--nodes and --here exclude each other");
  return arguments;
}

// What a shell command prints, errors too, however it ends.
std::string output_of(const std::string& command) {
  try {
    return cli::capture_external("/bin/sh", {"-c", "{ " + command + "; } 2>&1; true"});
  } catch (const std::exception&) {
    return "";
  }
}

struct SlurmSettings {
  unsigned int version = 0;
  std::string release, cluster, plugin_dir, plugstack, auth, select, controller_parameters;
};

std::string text(const char* value) {
  return value == nullptr ? "" : value;
}

std::optional<SlurmSettings> check_slurm(Findings& findings) {
  slurm_init(nullptr);
  slurm_conf_t* conf = nullptr;
  if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS) {
    findings.push_back(problem("slurm", fmt::format("slurmctld does not answer: {}", slurm_strerror(errno)),
                               "see that slurmctld and munge run here, and that SLURM_CONF is right"));
    return std::nullopt;
  }
  SlurmSettings settings;
  settings.release = text(conf->version);
  settings.version = version_number(settings.release);
  settings.cluster = text(conf->cluster_name);
  settings.plugin_dir = text(conf->plugindir);
  settings.plugstack = text(conf->plugstack);
  settings.auth = text(conf->authtype);
  settings.select = text(conf->select_type);
  settings.controller_parameters = text(conf->slurmctld_params);
  slurm_free_ctl_conf(conf);
  findings.push_back(
      well("slurm", fmt::format("{}, cluster {}, {}", settings.release, settings.cluster, settings.auth)));
  if (settings.select != "select/cons_tres")
    findings.push_back(problem("slurm", "SelectType is " + settings.select,
                               "GPUs are given out by select/cons_tres: set it in slurm.conf"));
  if (settings.controller_parameters.find("enable_configless") != std::string::npos)
    findings.push_back(warning("slurm", "configless: nodes get plugstack.conf from the controller",
                               "include no files in it that the nodes do not have, and try `sailor doctor "
                               "--nodes`"));
  return settings;
}

// The programs of a job, each with its libraries, and what starts them.
Findings check_programs_here(bool compute_node) {
  std::vector<ProgramState> programs;
  for (const char* verb : {"run", "checkpoint", "profile"}) {
    ProgramState program{verb, cli::find_external(verb), false};
    program.starts =
        !program.path.empty() && output_of(program.path + " --help").find("Usage") != std::string::npos;
    programs.push_back(std::move(program));
  }
  const std::string mpirun =
      output_of("command -v \"${SAILOR_MPIRUN:-mpirun.openmpi}\" || command -v mpirun");
  return check_programs(programs, mpirun.substr(0, mpirun.find('\n')), compute_node);
}

Findings check_launch() {
  if (output_of("srun --mpi=list").find("pmix") == std::string::npos)
    return {warning("mpi", "srun offers no pmix",
                    "jobs start by mpirun over srun, which needs none; `srun --mpi=pmix` would not work")};
  return {well("mpi", "srun offers pmix")};
}

Findings check_options() {
  if (output_of("sbatch --help").find("--sailor-objective") == std::string::npos)
    return {
        problem("sbatch", "does not know --sailor-objective: the plugin is not loaded here",
                "mend what is said about plugin and plugstack; `sbatch --help` then ends with our options")};
  return {well("sbatch", "has the --sailor-* options")};
}

// One free node of every GPU type looks at itself.
Findings check_nodes(const Site& site, const SlurmView& view, const std::string& config) {
  Findings findings;
  std::map<std::string, SnapshotNode> nodes;
  for (const SnapshotNode& node : live_cluster(view, site.config, NodeWishes{}).snapshot.nodes)
    if (!node.free_gpus.empty()) nodes.emplace(node.gpu_type, node);
  if (nodes.empty()) return {warning("nodes", "no node with GPUs is free", "try again later")};
  const std::string self = fs::read_symlink("/proc/self/exe");
  for (const auto& [type, node] : nodes) {
    const std::string said = output_of(
        fmt::format("timeout 60 srun --immediate=20 --quiet --job-name=sailor-doctor --nodes=1 --ntasks=1 "
                    "--partition='{}' --nodelist='{}' '{}' --here --config '{}'",
                    node.partition, node.name, self, config));
    const Findings there = parse_lines(said);
    if (there.empty())
      findings.push_back(problem(
          "node " + node.name, "srun does not run `sailor-doctor` there: " + said.substr(0, said.find('\n')),
          fmt::format("try `srun -p {} -w {} {} --here`", node.partition, node.name, self)));
    for (Finding finding : there) {
      finding.about = node.name + " " + finding.about;
      if (finding.level != Finding::Level::ok) findings.push_back(std::move(finding));
    }
    if (!there.empty() && !has_problems(there))
      findings.push_back(
          well("node", fmt::format("{} ({}): plugin, programs and site config", node.name, type)));
  }
  return findings;
}

void add(Findings& to, Findings from) {
  to.insert(to.end(), from.begin(), from.end());
}

int run(int argc, char** argv) {
  const Arguments arguments = parse_arguments(argc, argv);
  if (arguments.help) {
    fputs(kUsage, stdout);
    return kDone;
  }
  Findings findings;
  const std::optional<SlurmSettings> slurm = check_slurm(findings);
  if (slurm) add(findings, check_plugstack(slurm->plugstack, slurm->plugin_dir, slurm->version));
  if (slurm) add(findings, check_options());
  add(findings, check_programs_here(arguments.here));
  const std::optional<Site> site = check_site(arguments.config, findings);
  if (!arguments.here) {
    add(findings, check_launch());
    if (slurm && site) {
      const SlurmView view = read_slurm();
      add(findings, check_gres(*site, view));
      add(findings, check_profiles(*site, view));
      if (arguments.nodes) add(findings, check_nodes(*site, view, fs::absolute(arguments.config)));
    }
  }
  fputs((arguments.here ? to_lines(findings) : to_text(findings)).c_str(), stdout);
  return has_problems(findings) ? kFailed : kDone;
}

}  // namespace
}  // namespace sailor

int main(int argc, char** argv) {
  try {
    return sailor::run(argc, argv);
  } catch (const sailor::InputError& error) {
    fmt::print(stderr, "sailor: {}\n", error.what());
    return sailor::kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sailor: {}\n", error.what());
    return sailor::kFailed;
  }
}
