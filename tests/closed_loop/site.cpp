#include "tests/closed_loop/site.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <thread>

#include "planner/plan/plan_json.h"
#include "planner/process/program_path.h"
#include "planner/process/subprocess.h"
#include "planner/profile/layer_profile.h"
#include "planner/spec/text_file.h"
#include "trainer/record/run_directory.h"

namespace sailor::closed_loop {
namespace fs = std::filesystem;
namespace {

// A block's forward pass of one sequence on the fastest emulated type: long compared with a rank's wake-up,
// and with the real computation of all ranks that share a core.
constexpr double kFastestLayer_s = 0.004;
constexpr double kFastestLayerPerRank_s = 0.0008;  // and rank of a core

int cores() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

void run_program(const std::vector<std::string>& command, const std::string& directory,
                 const std::string& log) {
  SpawnOptions options;
  options.environment = {{"SAILOR_CONFIG", directory + "/sailor.yaml"}, {"OMP_NUM_THREADS", "1"}};
  options.output_file = log;
  const pid_t pid = spawn(command, options);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0)
    throw std::runtime_error(fmt::format("{} {}: {} (log: {})", fs::path(command[0]).filename().string(),
                                         describe_wait_status(status), last_line(log), log));
}

}  // namespace

Site::Site(const std::string& directory, int emulated_ranks)
    : directory_(fs::absolute(directory)),
      fastest_layer_s_(emulated_ranks > 0
                           ? std::max(kFastestLayer_s, kFastestLayerPerRank_s * emulated_ranks / cores())
                           : 0) {
  fs::create_directories(profiles());
  write_file_atomically(directory_ + "/sailor.yaml",
                        "sailor_site: 1\ncatalog: catalog.yaml\nprofiles: [profiles]\n"
                        "default_zone: {zone: here, region: here}\n");
  write_file_atomically(catalog_file(),
                        "sailor_catalog: 1\ngpu_types:\n  cpu: {memory: 64GiB, usd_per_hour: 1}\n");
  std::ofstream text(directory_ + "/text.txt");
  uint64_t state = 1;
  for (int i = 0; i < 400'000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text << static_cast<char>('a' + (state >> 59) % 26);
  }
}

std::string Site::write_job(const Model& model, int64_t global_batch, int steps) const {
  const ModelSpec& m = model.job.model;
  const std::string file = fmt::format("{}/{}-{}.yaml", directory_, m.name, runs_);
  write_file_atomically(
      file,
      fmt::format(
          "model: {{family: {}, layers: {}, hidden: {}, heads: {}, feed_forward: {}, sequence: {}, "
          "vocabulary: {}}}\n"
          "training: {{global_batch: {}, steps: {}, seed: {}, optimizer: {{name: adamw, lr: 3.0e-4}}}}\n"
          "data: {{train: text.txt, format: bytes}}\nobjective: throughput\n",
          m.family, m.layers, m.hidden, m.heads, m.feed_forward, m.sequence, m.vocabulary, global_batch,
          steps, model.job.training.seed));
  return file;
}

void Site::profile(const Model& model, double seconds) {
  run_profiler(model, model.microbatches, model.tps, 0, seconds);
  if (fastest_layer_s_ > 0) write_emulation(model);
}

void Site::profile(const Model& model, const Plan& plan, double seconds) {
  std::set<int> tps;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) tps.insert(stage.shape.tp);
  const std::set<int> sizes = microbatch_sizes(plan);
  run_profiler(model, {sizes.begin(), sizes.end()}, {tps.begin(), tps.end()}, num_ranks(plan), seconds);
}

void Site::run_profiler(const Model& model, const std::vector<int>& microbatches, const std::vector<int>& tps,
                        int ranks, double seconds) const {
  fs::remove_all(profiles());  // of the model or the moment before
  const std::string job = write_job(model, model.microbatches.back(), 1);
  std::vector<std::string> command = {program_path("sailor-profile"),
                                      job,
                                      "--out",
                                      profiles(),
                                      "--seconds",
                                      fmt::format("{}", seconds),
                                      "--tp",
                                      fmt::format("{}", fmt::join(tps, ",")),
                                      "--microbatches",
                                      fmt::format("{}", fmt::join(microbatches, ","))};
  if (ranks > 0) command.insert(command.end(), {"--ranks", std::to_string(ranks)});
  run_program(command, directory_, directory_ + "/profile.log");
}

void Site::write_emulation(const Model& model) const {
  double block_s = std::numeric_limits<double>::infinity();  // the shortest forward pass of one sequence
  for (const auto& entry : fs::directory_iterator(profiles())) {
    const std::string text = read_text_file(entry.path());
    if (text.find("sailor_layer_profile") == std::string::npos) continue;
    for (const ProfileFile::TimeCell& cell : parse_profile_file(text, entry.path()).times) {
      if (cell.kind == LayerKind::block) block_s = std::min(block_s, cell.times.forward_s / cell.microbatch);
    }
  }
  const double slowdown = std::ceil(fastest_layer_s_ / block_s);
  const ModelSpec& m = model.job.model;
  // The two moments of a block, each way, take as long as its forward pass on the fastest type.
  const double host = 2.0 * 4 * 12 * m.hidden * m.hidden / fastest_layer_s_;
  std::string catalog = "sailor_catalog: 1\ngpu_types:\n  cpu: {memory: 64GiB, usd_per_hour: 1}\n";
  for (const auto& [name, factor] : {std::pair{"fast", 1.0}, {"middle", 1.7}, {"slow", 2.6}})
    catalog += fmt::format(
        "  {}: {{memory: 64GiB, emulate: {{profile: cpu, slowdown: {}}}, usd_per_hour: 1, node: {{host: "
        "{}B/s}}}}\n",
        name, slowdown * factor, host);
  write_file_atomically(catalog_file(), catalog);

  // A node's interface needs about as long for an activation as the fastest type for a layer; within a node
  // it is four times faster.
  const double activation_bytes = 4.0 * m.sequence * m.hidden;
  const double interface = std::max(activation_bytes / fastest_layer_s_, 1e6);
  const auto link = [&](const char* scope, double latency_s, double bytes_per_s) {
    return nlohmann::ordered_json{{"from", nlohmann::ordered_json::object()},
                                  {"to", nlohmann::ordered_json::object()},
                                  {"scope", scope},
                                  {"latency_s", latency_s},
                                  {"bytes_per_s", bytes_per_s},
                                  {"node_bytes_per_s", interface}};
  };
  const nlohmann::ordered_json network = {
      {"sailor_network_profile", 1},
      {"measured", "emulated"},
      {"links", {link("intra_node", 1e-3, 4 * interface), link("inter_node", 3e-3, interface)}}};
  write_file_atomically(profiles() + "/network.json", network.dump(1) + "\n");
}

Measured Site::train(const Model& model, const Plan& plan, int steps) {
  const std::string name = fmt::format("{}/run-{}", directory_, ++runs_);
  const std::string job = write_job(model, plan.global_batch, steps);
  write_file_atomically(name + ".plan.json", to_json(plan) + "\n");
  run_program(
      {program_path("sailor-run"), job, "--local", "--plan", name + ".plan.json", "--directory", name},
      directory_, name + ".log");

  const auto summary = nlohmann::json::parse(read_text_file(name + "/summary.json"));
  Measured measured;
  measured.iteration_s = summary.at("measured_iteration_s").get<double>();
  measured.least_peak_bytes = std::numeric_limits<int64_t>::max();
  double paced_s = 0, overrun_s = 0;
  for (const auto& rank : summary.at("ranks")) {
    const auto peak = rank.at("peak_rss_bytes").get<int64_t>();
    measured.peak_bytes = std::max(measured.peak_bytes, peak);
    measured.least_peak_bytes = std::min(measured.least_peak_bytes, peak);
    paced_s += rank.at("paced_s").get<double>();
    overrun_s += rank.at("overrun_s").get<double>();
  }
  if (paced_s > 0) measured.overrun_share = overrun_s / paced_s;
  return measured;
}

}  // namespace sailor::closed_loop
