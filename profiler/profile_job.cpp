#include "profiler/profile_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

#include "planner/process/seconds_since.h"
#include "planner/profile/layer_profile.h"
#include "planner/profile/network_file.h"
#include "planner/spec/error.h"
#include "planner/spec/model_family.h"
#include "planner/spec/text_file.h"
#include "profiler/cpu_quota.h"
#include "profiler/equipment.h"
#include "profiler/layer_bench.h"
#include "profiler/layer_rounds.h"
#include "profiler/link_bench.h"
#include "profiler/overhead_bench.h"
#include "profiler/sync_bench.h"
#include "trainer/gpu/gpu.h"
#include "trainer/model/torch_device.h"

namespace sailor {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

// Shares of the time that the user gives.
constexpr double kLayerShare = 0.8;
constexpr double kLinkShare = 0.1;
constexpr double kOverheadShare = 0.04;
constexpr double kSyncShare = 0.04;
constexpr int kSizesMicrobatch = 4;
// By default.
constexpr int kMostMicrobatch = 64, kMostProcessorMicrobatch = 8, kLeastProcessorTp = 4, kMostProcessorTp = 8;
constexpr int kSamplesPerRound = 5;
constexpr double kQuotaPeriods = 4;  // that a measurement lasts at least, when there is a quota

// Older profiles do not tell local blocks from others.
bool has_all_kinds(const ProfileFile& profile) {
  return std::ranges::all_of(layer_kinds(profile.model), [&](LayerKind kind) {
    return std::ranges::count(profile.times, kind, &ProfileFile::TimeCell::kind) > 0;
  });
}

// What earlier runs measured of the same thing with the same equipment; empty when there is nothing, or
// nothing that can be read.
ProfileFile earlier(const std::string& path, const JobSpec& job, const std::string& gpu_type,
                    const MeasuredWith& equipment, ProfileOutcome& outcome) {
  if (!fs::exists(path)) return {};
  try {
    ProfileFile profile = load_profile_file(path);
    if (!matches(profile, job.model, job.training.precision) || profile.gpu_type != gpu_type) {
      outcome.notes.push_back(fmt::format("{}: was the profile of something else; replaced", path));
    } else if (!same_equipment(profile.measured, equipment)) {
      outcome.notes.push_back(
          fmt::format("{}: was measured with something else ({}); replaced", path, profile.measured.text()));
    } else if (!has_all_kinds(profile)) {
      outcome.notes.push_back(fmt::format("{}: has no times of local blocks; replaced", path));
    } else {
      return profile;
    }
  } catch (const InputError& e) {
    outcome.notes.push_back(fmt::format("{}; replaced", e.what()));
  }
  return {};
}

void put(ProfileFile& profile, const ProfileFile::SizeCell& cell) {
  std::erase_if(profile.sizes,
                [&cell](const auto& c) { return c.shape == cell.shape && c.kind == cell.kind; });
  profile.sizes.push_back(cell);
}

NetworkFile earlier_network(const std::string& path, ProfileOutcome& outcome) {
  if (!fs::exists(path)) return {};
  try {
    return load_network_file(path);
  } catch (const InputError& e) {
    outcome.notes.push_back(fmt::format("{}; replaced", e.what()));
    return {};
  }
}

// Measures the link between ranks of this machine, keeps it in the file at `path` (empty = nowhere), and
// returns it alone.
NetworkProfile measure_network(const std::string& path, const MeasuringOptions& options,
                               const MeasuredWith& measured, ProfileOutcome& outcome) {
  std::vector<int64_t> sizes;
  for (int64_t bytes = int64_t{4} << 10; bytes <= int64_t{16} << 20; bytes *= 4) sizes.push_back(bytes);
  const LinkEnd any{.gpu_type = "", .zone = "", .gpus = 0};
  const NetworkFile::Link link = {.from = any,
                                  .to = any,
                                  .transport = Transport::sockets,
                                  .points = measure_messages(sizes, options),
                                  .latency_s = {},
                                  .measured = measured.text() + ", over the loopback interface",
                                  .messages = {}};
  NetworkFile here;
  here.links.push_back(link);
  if (!path.empty()) {
    // What `sailor probe` measured of particular links stays, and comes before this link of any GPUs.
    NetworkFile network = earlier_network(path, outcome);
    network.measured = link.measured;
    network.link(any, any, NetworkProfile::Scope::any, Transport::sockets) = link;
    save_network_file(network, path);
  }
  return to_profile(here);
}

// What planning has to know besides layers; the network first, because the cost of sums is what is left of
// them.
void measure_overheads(const JobSpec& job, const ProfileRequest& request, int ranks, ProfileOutcome& outcome,
                       ProfileFile& profile) {
  MeasuringOptions overhead_options, link_options, sync_options;
  overhead_options.max_seconds = kOverheadShare * request.seconds;
  link_options.max_seconds = kLinkShare * request.seconds / 8;
  sync_options.max_seconds = kSyncShare * request.seconds;
  const Estimate iteration = measure_iteration_overhead_s(job, overhead_options, request.gpus > 0);
  Estimate sync;  // on a GPU NCCL reduces gradients, without additional processor time
  if (request.gpus == 0) {
    const NetworkProfile here =
        measure_network(outcome.network_file, link_options, profile.measured, outcome);
    sync = measure_sync_s_per_byte(job, ranks, here, sync_options);
  }
  profile.overheads.base_memory_bytes = request.base_memory_bytes;
  profile.overheads.iteration_overhead_s = iteration.value;
  profile.overheads.sync_s_per_byte = sync.value;
  profile.overhead_samples = {1, iteration.samples, sync.samples};
}

// 1, 2, 4 ... up to `most`.
std::vector<int> doublings(int most) {
  std::vector<int> values;
  for (int value = 1; value <= most; value *= 2) values.push_back(value);
  return values;
}

std::vector<int> tps_of(const JobSpec& job, const ProfileRequest& request, int ranks) {
  if (!request.tps.empty()) return request.tps;
  std::vector<int> tps =
      doublings(request.gpus > 0 ? request.gpus : std::clamp(ranks, kLeastProcessorTp, kMostProcessorTp));
  std::erase_if(tps, [&](int tp) { return tp > 1 && !job.model.splits_over({tp}); });
  return tps;
}

std::vector<int> microbatches_of(const ProfileRequest& request) {
  if (!request.microbatches.empty()) return request.microbatches;
  return doublings(request.gpus > 0 ? kMostMicrobatch : kMostProcessorMicrobatch);
}

// Of all kinds of layers. A sequence of a large model may fill a GPU.
void measure_sizes(const JobSpec& job, int tp, Device& device, ProfileFile& profile) {
  for (const LayerKind kind : layer_kinds(job.model)) {
    for (int microbatch = kSizesMicrobatch;; microbatch = 1) {
      try {
        put(profile, {{.tp = tp}, kind, LayerBench(job, kind, tp, device).sizes(microbatch)});
        break;
      } catch (const std::exception& error) {
        const auto failure = device_failure(error);
        if (microbatch == 1 || !failure || !failure->out_of_memory()) throw;
      }
    }
  }
}

// The TP degrees of `tps` that can be measured; notes say why others cannot. Throws InputError when none can.
std::vector<int> measure_sizes(const JobSpec& job, const std::vector<int>& tps, const ProfileRequest& request,
                               Device& device, ProfileFile& profile, ProfileOutcome& outcome) {
  std::vector<int> measured;
  std::string reason;
  for (const int tp : tps) {
    if (request.gpus > 0 && tp > request.gpus) {
      outcome.notes.push_back(fmt::format(
          "TP degree {} skipped: measuring it needs as many GPUs, this node has {}", tp, request.gpus));
      continue;
    }
    try {
      measure_sizes(job, tp, device, profile);
      measured.push_back(tp);
    } catch (const InputError& e) {
      outcome.notes.push_back(fmt::format("TP degree {} skipped: {}", tp, e.what()));
      reason = e.what();
    }
  }
  if (measured.empty()) throw InputError({job.file, 0}, reason);
  return measured;
}

int ranks_of(const ProfileRequest& request) {
  if (request.gpus > 0) return request.gpus;
  if (request.ranks > 0) return request.ranks;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

// Each cell is measured twice over: the computation, and the update. It is not measured in one go: the speed
// of a machine drifts, and that must not look like a property of some cells.
MeasuringOptions layer_options(const ProfileRequest& request, size_t cells, int ranks,
                               ProfileOutcome& outcome) {
  MeasuringOptions options;
  options.max_seconds =
      kLayerShare * request.seconds / (2.0 * LayerRounds::kRounds * static_cast<double>(cells));
  options.min_samples = kSamplesPerRound;
  const CpuQuota quota = cpu_quota();
  if (request.gpus == 0 && quota.processors < ranks) {
    options.with_interruptions = true;
    options.min_seconds = kQuotaPeriods * quota.period_s;
    outcome.notes.push_back(fmt::format(
        "the cgroup of this process is limited to {:.2f} CPUs for {} ranks: times include throttling",
        quota.processors, ranks));
  }
  return options;
}

}  // namespace

std::string layer_profile_path(const std::string& directory, const JobSpec& job,
                               const std::string& gpu_type) {
  const ModelSpec& m = job.model;
  std::string rest;  // what is unlike the first transformers
  if (m.key_value_heads() != m.heads) rest += fmt::format("-kv{}", m.kv_heads);
  ModelSpec usual;
  set_family(usual, m.family);
  for (const ModelKey* key : profiled_keys()) {
    if (key->name == "attention_window") {
      if (m.attention_window > 0) rest += fmt::format("-w{}", m.attention_window);
    } else if (!key->equal(m, usual)) {
      rest += fmt::format("-{}_{}", key->name, key->text(m));
    }
  }
  if (m.tied_embeddings) rest += "-tied";
  return fmt::format("{}/{}-{}x{}x{}-s{}-v{}{}-{}.{}.json", directory, m.family, m.hidden, m.heads,
                     m.feed_forward, m.sequence, m.vocabulary, rest, to_string(job.training.precision),
                     gpu_type);
}

ProfileOutcome profile_job(const JobSpec& job, const ProfileRequest& request,
                           const std::function<void(const std::string&)>& tell,
                           const std::function<void(double done, double total)>& advance) {
  std::error_code error;
  fs::create_directories(request.directory, error);
  if (error) throw std::runtime_error(fmt::format("cannot make {}: {}", request.directory, error.message()));

  ProfileOutcome outcome;
  outcome.layer_file = layer_profile_path(request.directory, job, request.gpu_type);
  if (request.links && request.gpus == 0) outcome.network_file = request.directory + "/network.json";
  const std::unique_ptr<Gpu> gpu = request.gpus > 0 ? open_gpu({}) : nullptr;
  Device& device = gpu ? gpu->device() : host_device();
  const ComputeOn computes(device);

  const int ranks = ranks_of(request);
  MeasuredWith equipment = this_equipment(ranks);
  if (gpu) equipment.device = gpu->name();
  ProfileFile profile = earlier(outcome.layer_file, job, request.gpu_type, equipment, outcome);
  profile.gpu_type = request.gpu_type;
  profile.model = job.model;
  profile.precision = job.training.precision;
  profile.measured = equipment;
  const std::vector<int> microbatches = microbatches_of(request);
  const std::vector<int> tps =
      measure_sizes(job, tps_of(job, request, ranks), request, device, profile, outcome);
  measure_overheads(job, request, ranks, outcome, profile);
  tell(
      fmt::format("base memory {:.0f} MiB, {:.2f} ms per iteration and {:.2f} ms per MB of gradients "
                  "outside layers and links",
                  static_cast<double>(request.base_memory_bytes) / (1 << 20),
                  1e3 * profile.overheads.iteration_overhead_s, 1e9 * profile.overheads.sync_s_per_byte));

  const MeasuringOptions options = layer_options(request, tps.size() * microbatches.size(), ranks, outcome);
  LayerRounds rounds({.job = job,
                      .microbatches = microbatches,
                      .tps = tps,
                      .ranks = ranks,
                      .gpus = request.gpus > 0,
                      .open_ended = request.gpus > 0 && request.microbatches.empty(),
                      .seconds = kLayerShare * request.seconds},
                     options, outcome.layer_file, profile);
  rounds.measure(advance);
  for (const std::string& note : rounds.notes()) outcome.notes.push_back(note);
  outcome.cells = rounds.tell_all(tell);
  if (outcome.cells == 0)
    throw std::runtime_error(
        fmt::format("{}: no microbatch of the model fits into the memory of a GPU", job.file));
  return outcome;
}

}  // namespace sailor
