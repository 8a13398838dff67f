// sailor-doctor: is this installation sound, and what to do if not.
//
// Here: Slurm answers, the plugin is in its stack and built for it, the site's files fit the cluster, jobs
// can be launched. With --nodes, the same of the compute nodes: one free node of every GPU type runs
// `sailor-doctor --here` through srun.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

#include "planner/cli/external.h"
#include "planner/process/scratch_directory.h"
#include "planner/scheduler/scheduler.h"
#include "planner/spec/error.h"
#include "planner/spec/site_config.h"
#include "planner/spec/text_file.h"
#include "spank_plugin/doctor/plugstack.h"
#include "spank_plugin/doctor/program_checks.h"
#include "spank_plugin/doctor/site_checks.h"
#include "spank_plugin/doctor/slurm_checks.h"
#include "spank_plugin/slurm/installation.h"
#include "spank_plugin/slurm/live_cluster.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

constexpr char kUsage[] =
    "usage: sailor doctor [--config FILE] [--nodes | --here]\n"
    "\n"
    "Checks this installation of Sailor, and says how to fix each problem.\n"
    "  --config FILE  site config (default: $SAILOR_CONFIG, else /etc/sailor/sailor.yaml)\n"
    "  --nodes        also check compute nodes: one free node of every GPU type, through srun\n"
    "  --here         check only this node; for programs: a line per finding, tab-separated\n"
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

std::optional<SlurmSettings> check_slurm(Findings& findings) {
  initialise_slurm();
  SlurmSettings settings;
  try {
    settings = read_slurm_settings();
  } catch (const std::runtime_error& error) {
    findings.push_back(problem("slurm", fmt::format("slurmctld does not answer: {}", error.what()),
                               "check that slurmctld and munge run, and that SLURM_CONF is right"));
    return std::nullopt;
  }
  findings.push_back(
      well("slurm", fmt::format("{}, cluster {}, {}", settings.release, settings.cluster, settings.auth)));
  if (settings.select != "select/cons_tres")
    findings.push_back(problem("slurm", "SelectType is " + settings.select,
                               "GPU allocation needs select/cons_tres: set it in slurm.conf"));
  if (settings.controller_parameters.find("enable_configless") != std::string::npos)
    findings.push_back(
        warning("slurm", "configless: nodes get plugstack.conf from the controller",
                "make sure that the files that it includes exist on the nodes, and run `sailor doctor "
                "--nodes`"));
  return settings;
}

// The programs of a job, each with its libraries, and what starts them.
Findings check_programs_here(bool compute_node) {
  std::vector<ProgramState> programs;
  for (const char* verb : {"run", "checkpoint", "profile"}) {
    ProgramState program{verb, cli::find_external(verb), false};
    program.starts =
        !program.path.empty() && output_of(program.path + " --help").find("--help") != std::string::npos;
    programs.push_back(std::move(program));
  }
  const std::string mpirun =
      output_of("command -v \"${SAILOR_MPIRUN:-mpirun.openmpi}\" || command -v mpirun");
  return check_programs(programs, mpirun.substr(0, mpirun.find('\n')), compute_node);
}

Findings check_launch() {
  if (!offers_mpi("pmix"))
    return {warning("mpi", "srun does not support pmix",
                    "jobs start with mpirun over srun and do not need it; `srun --mpi=pmix` does not work")};
  return {well("mpi", "srun supports pmix")};
}

Findings check_options() {
  if (!has_submit_option("--sailor-objective"))
    return {problem(
        "sbatch", "does not know --sailor-objective: the plugin is not loaded here",
        "fix the problems of plugin and plugstack; `sbatch --help` then lists the --sailor-* options")};
  return {well("sbatch", "has the --sailor-* options")};
}

// What a program prints on that node, however it ends.
std::string output_on(const SnapshotNode& node, const std::vector<std::string>& command) {
  const ScratchDirectory scratch;
  const std::string file = scratch.path() + "/said";
  Scheduler& scheduler = site_scheduler();
  const StepId program = scheduler.start_program({.job_name = "sailor-doctor",
                                                  .node = node.name,
                                                  .partition = node.partition,
                                                  .command = command,
                                                  .whole_node = false,
                                                  .immediate_s = 20,
                                                  .limit_s = 60,
                                                  .output_file = file});
  while (!scheduler.step_end(program)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return read_text_file(file);
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
    const std::string said = output_on(node, {self, "--here", "--config", config});
    const Findings there = parse_lines(said);
    if (there.empty())
      findings.push_back(problem(
          "node " + node.name, "srun does not run `sailor-doctor` there: " + said.substr(0, said.find('\n')),
          fmt::format("try `{}`", run_on_node_text(node.partition, node.name, self + " --here"))));
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
  if (slurm)
    add(findings, check_plugstack(slurm->plugstack, slurm->plugin_dir, version_number(slurm->release)));
  if (slurm) add(findings, check_options());
  add(findings, check_programs_here(arguments.here));
  const std::optional<Site> site = check_site(arguments.config, findings);
  if (!arguments.here) {
    add(findings, check_launch());
    if (slurm) add(findings, check_scheduling(*slurm));
    if (slurm && site) {
      add(findings, check_cgroups(slurm->cgroup_conf));
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
