// sailor-cluster: what a new job could get of the live Slurm cluster now, as a snapshot in YAML on stdout.

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/spec/error.h"
#include "planner/spec/quantity.h"
#include "planner/spec/site_config.h"
#include "planner/spec/snapshot.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"
#include "spank_plugin/node_limits.h"
#include "spank_plugin/slurm/live_cluster.h"
#include "spank_plugin/slurm/node_use.h"
#include "spank_plugin/slurm/submitted_job.h"
#include "spank_plugin/slurm/wanted_nodes.h"

namespace sailor {
namespace {

constexpr char kUsage[] =
    "usage: sailor-cluster [--yaml] [--busy] [--config FILE] [--partition=P,...] [--nodelist=N,...]\n"
    "                      [--exclude=N,...] [--constraint=F] [--reservation=R] [--account=A] [--qos=Q] "
    "[--time=T]\n"
    "                      [--exclusive=exclusive] [--cpus-per-task=N] [--unless-seen=FILE] "
    "[--wanted-of=JOB]\n"
    "       sailor-cluster --forget-nodes=JOB\n"
    "\n"
    "Prints the nodes, GPUs and prices that a job submitted now could get, as a cluster snapshot (YAML).\n"
    "Nodes that it could not get are listed under not_free with the reason.\n"
    "Job options have the meaning of sbatch's options of the same name.\n"
    "--busy treats nodes that run other jobs as free.\n"
    "--unless-seen=FILE prints nothing, after a single request to Slurm, if no node's free part has changed\n"
    "since the last call with this file, at most half an hour ago.\n"
    "--wanted-of=JOB also lists the nodes of JOB's helper jobs on which a waiting job would start (wanted).\n"
    "--config FILE is the site config (default: $SAILOR_CONFIG, else /etc/sailor/sailor.yaml).\n"
    "--forget-nodes=JOB lets a pending job, all its components, start on other nodes than those that it\n"
    "requests by name.\n";

struct Arguments {
  bool help = false, busy = false;
  std::map<std::string, std::string> of_job;  // options that the job would be submitted with
  std::string config = site_config_path();
  std::string seen;                         // a file; empty = always look
  std::string wanted_of;                    // a job; empty = none
  std::optional<uint32_t> forget_nodes_of;  // a job; then nothing else is done
};

constexpr const char* kJobOptions[] = {"partition", "nodelist", "exclude", "constraint", "reservation",
                                       "account",   "qos",      "time",    "exclusive",  "cpus-per-task"};

// `--NAME=VALUE` of one of them.
bool take_job_option(const std::string& word, std::map<std::string, std::string>& options) {
  for (const std::string name : kJobOptions) {
    if (word.rfind("--" + name + "=", 0) != 0) continue;
    options[name] = word.substr(name.size() + 3);
    return true;
  }
  return false;
}

uint32_t job_id(const char* option, const std::string& text) {
  const std::optional<double> id = parse_number(text);
  if (!id || *id < 1 || *id > std::numeric_limits<uint32_t>::max() || *id != std::floor(*id))
    throw InputError(fmt::format("{}: must be the number of a job, is {}", option, in_quotes(text)));
  return static_cast<uint32_t>(*id);
}

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "-h" || word == "--help") {
      arguments.help = true;
    } else if (word == "--busy") {
      arguments.busy = true;
    } else if (word == "--config" && i + 1 < argc) {
      arguments.config = argv[++i];
    } else if (word.rfind("--config=", 0) == 0) {
      arguments.config = word.substr(9);
    } else if (word.rfind("--unless-seen=", 0) == 0) {
      arguments.seen = word.substr(14);
    } else if (word.rfind("--forget-nodes=", 0) == 0) {
      arguments.forget_nodes_of = job_id("--forget-nodes", word.substr(15));
    } else if (word.rfind("--wanted-of=", 0) == 0) {
      arguments.wanted_of = std::to_string(job_id("--wanted-of", word.substr(12)));
    } else if (word != "--yaml" && !take_job_option(word, arguments.of_job)) {
      throw InputError(word + ": unknown argument, see sailor-cluster --help");
    }
  }
  return arguments;
}

// Whether `file` says that this was printed already. Jobs that wait, reservations and partitions may have
// changed meanwhile: after a while they are looked at all the same.
bool was_seen(const std::string& file, const std::string& text) {
  constexpr auto kForgotten = std::chrono::minutes(30);
  std::error_code absent;
  const auto written = std::filesystem::last_write_time(file, absent);
  return !absent && std::filesystem::file_time_type::clock::now() - written < kForgotten &&
         read_text_file(file) == text;
}

std::string to_text(const std::vector<WantedNode>& wanted) {
  std::string text;
  for (const WantedNode& one : wanted) text += fmt::format("{}:{} ", one.node, one.job);
  return text;
}

int run(int argc, char** argv) {
  Arguments arguments = parse_arguments(argc, argv);
  if (arguments.help) {
    fputs(kUsage, stdout);
    return kDone;
  }
  if (arguments.forget_nodes_of) {
    initialise_slurm();
    forget_requested_nodes(*arguments.forget_nodes_of);
    return kDone;
  }
  SiteConfig site = load_site_config(arguments.config);
  initialise_slurm();
  const auto option = [&](const char* name) -> std::optional<std::string> {
    auto it = arguments.of_job.find(name);
    if (it == arguments.of_job.end()) return std::nullopt;
    return it->second;
  };
  NodeWishes wishes = node_wishes(option, SubmitOptions{}, JobSpec{});
  wishes.include_busy = arguments.busy;
  std::vector<SlurmNode> nodes = read_nodes();
  std::string seen = free_parts(nodes);
  std::optional<SlurmView> queue;
  std::vector<WantedNode> wanted;
  if (!arguments.wanted_of.empty()) {
    queue = read_queue(nodes, arguments.wanted_of);
    wanted = wanted_nodes(*queue);
    seen += to_text(wanted);
  }
  if (!arguments.seen.empty() && was_seen(arguments.seen, seen)) return kDone;
  if (!queue) queue = read_queue(std::move(nodes));
  LiveCluster cluster = live_cluster(read_slurm(std::move(*queue)), site, wishes);
  cluster.snapshot.wanted = std::move(wanted);
  for (const std::string& note : cluster.notes) fprintf(stderr, "note: %s\n", note.c_str());
  std::string yaml = to_yaml(cluster.snapshot);
  fwrite(yaml.data(), 1, yaml.size(), stdout);
  if (fflush(stdout) != 0) return kFailed;
  if (!arguments.seen.empty()) write_file_atomically(arguments.seen, seen);
  return kDone;
}

}  // namespace
}  // namespace sailor

int main(int argc, char** argv) {
  try {
    return sailor::run(argc, argv);
  } catch (const sailor::InputError& error) {
    fprintf(stderr, "sailor: %s\n", error.what());
    return sailor::kBadInput;
  } catch (const std::exception& error) {
    fprintf(stderr, "sailor: %s\n", error.what());
    return sailor::kFailed;
  }
}
