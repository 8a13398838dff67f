#include "profiler/profile_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

#include "planner/process/seconds_since.h"
#include "planner/profile/layer_profile.h"
#include "planner/profile/network_file.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"
#include "profiler/cpu_quota.h"
#include "profiler/crowd_bench.h"
#include "profiler/equipment.h"
#include "profiler/layer_bench.h"
#include "profiler/link_bench.h"
#include "profiler/overhead_bench.h"
#include "profiler/profile_journal.h"
#include "profiler/sync_bench.h"
#include "trainer/gpu/gpu.h"
#include "trainer/model/torch_device.h"

namespace sailor {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<LayerKind, 3> kLayerKinds = {LayerKind::embedding, LayerKind::block, LayerKind::head};
constexpr std::array<const char*, 3> kKindNames = {"embedding", "block", "head"};
// Shares of the time that the user gives.
constexpr double kLayerShare = 0.8;
constexpr double kLinkShare = 0.1;
constexpr double kOverheadShare = 0.04;
constexpr double kSyncShare = 0.04;
constexpr int kSizesMicrobatch = 4;
constexpr int kRounds = 3;       // of all cells, one after the other
constexpr int kMostRounds = 20;  // of cells that are not precise yet, while there is time
constexpr int kSamplesPerRound = 5;
constexpr double kQuotaPeriods = 4;  // that a measurement lasts at least, when there is a quota

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
    } else {
      return profile;
    }
  } catch (const InputError& e) {
    outcome.notes.push_back(fmt::format("{}; replaced", e.what()));
  }
  return {};
}

void put(ProfileFile& profile, const ProfileFile::TimeCell& cell) {
  std::erase_if(profile.times, [&cell](const auto& c) {
    return c.microbatch == cell.microbatch && c.shape == cell.shape && c.kind == cell.kind;
  });
  profile.times.push_back(cell);
}

void put(ProfileFile& profile, const ProfileFile::SizeCell& cell) {
  std::erase_if(profile.sizes,
                [&cell](const auto& c) { return c.shape == cell.shape && c.kind == cell.kind; });
  profile.sizes.push_back(cell);
}

void sort_cells(ProfileFile& profile) {
  std::sort(profile.times.begin(), profile.times.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.shape, a.microbatch, a.kind) < std::tuple(b.shape, b.microbatch, b.kind);
  });
  std::sort(profile.sizes.begin(), profile.sizes.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.shape, a.kind) < std::tuple(b.shape, b.kind);
  });
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

bool precise(const StackBench::ByKind& cell) {
  double whole_s = 0, unsure_s = 0;  // of an embedding, a block and a head
  for (const LayerMeasurement& m : cell) {
    const double busy_s = m.times.forward_s + m.times.backward_s;
    whole_s += busy_s;
    unsure_s += m.relative_error * busy_s;
  }
  return unsure_s <= MeasuringOptions().relative_error * whole_s;
}

using Benches = std::map<int, std::vector<std::unique_ptr<LayerBench>>>;  // by TP degree

// Of the TP degrees that can be measured; notes say why others cannot. Throws InputError when none can.
Benches make_benches(const JobSpec& job, const ProfileRequest& request, Device& device,
                     ProfileOutcome& outcome) {
  Benches benches;
  std::string reason;
  for (const int tp : request.tps) {
    if (request.gpus > 0 && tp > request.gpus) {
      outcome.notes.push_back(fmt::format(
          "TP degree {} skipped: measuring it needs as many GPUs, this node has {}", tp, request.gpus));
      continue;
    }
    try {
      std::vector<std::unique_ptr<LayerBench>> kinds;
      for (const LayerKind kind : kLayerKinds)
        kinds.push_back(std::make_unique<LayerBench>(job, kind, tp, device));
      benches[tp] = std::move(kinds);
    } catch (const InputError& e) {
      outcome.notes.push_back(fmt::format("TP degree {} skipped: {}", tp, e.what()));
      reason = e.what();
    }
  }
  if (benches.empty()) throw InputError({job.file, 0}, reason);
  return benches;
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
  options.max_seconds = kLayerShare * request.seconds / (2.0 * kRounds * static_cast<double>(cells));
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

// The rounds in which all cells are measured, kept in a journal and in the profile's file as they are done.
class LayerRounds {
 public:
  // Keeps references. Takes up what the journal of an interrupted run has.
  LayerRounds(const JobSpec& job, const ProfileRequest& request, int ranks, const MeasuringOptions& options,
              const std::string& file, ProfileFile& profile)
      : request_(request),
        options_(options),
        file_(file),
        profile_(profile),
        crowd_(job, ranks, collectives_of(options), request.gpus > 0),
        journal_(file, profile.measured) {}

  // Until all cells have kRounds rounds and are precise, or the time is over.
  void measure(const std::vector<int>& tps, const std::function<void(double done, double total)>& advance) {
    for (const auto& [cell, rounds] : journal_.rounds())
      if (std::find(tps.begin(), tps.end(), cell.first) != tps.end()) put_cell(cell.first, cell.second);
    const auto begin = Clock::now();
    // Rounds after the first kRounds, of some cells, count for nothing.
    const double cells = kRounds * static_cast<double>(tps.size() * request_.microbatches.size());
    double cells_done = 0;
    for (size_t round = 0; round < kMostRounds; ++round) {
      const double elapsed_s = seconds_since(begin);
      if (round >= kRounds && elapsed_s >= kLayerShare * request_.seconds) break;
      for (const int tp : tps) {
        if (const std::vector<int> due = due_in(round, tp); !due.empty()) measure_round(tp, due);
        cells_done += static_cast<double>(request_.microbatches.size());
        if (advance && round < kRounds) advance(cells_done, cells);
      }
    }
  }

  // A line for every cell; their number. The journal has done its work.
  int tell_all(const std::function<void(const std::string&)>& tell) {
    int cells = 0;
    for (const auto& [key, of_cell] : journal_.rounds()) {
      const StackBench::ByKind cell = typical(of_cell);
      std::string line = fmt::format("microbatch {:>3}  tp {}", key.second, key.first);
      for (size_t k = 0; k < kLayerKinds.size(); ++k) {
        const LayerMeasurement& m = cell[k];
        line += fmt::format(" | {} {:.3f} + {:.3f} + {:.3f} ms, {} samples, +-{:.1f} %", kKindNames[k],
                            1e3 * m.times.forward_s, 1e3 * m.times.backward_s, 1e3 * m.times.update_s,
                            m.samples, 100 * m.relative_error);
      }
      tell(line);
      ++cells;
    }
    journal_.finish();
    return cells;
  }

 private:
  static MeasuringOptions collectives_of(const MeasuringOptions& layers) {
    MeasuringOptions options;
    options.max_seconds = layers.max_seconds;
    return options;
  }

  // Microbatches of the TP degree that this round measures; those of earlier rounds an interrupted run did.
  std::vector<int> due_in(size_t round, int tp) const {
    std::vector<int> due;
    for (const int microbatch : request_.microbatches) {
      const auto found = journal_.rounds().find({tp, microbatch});
      if (found != journal_.rounds().end() && found->second.size() > round) continue;
      if (round < kRounds || !precise(typical(journal_.rounds().at({tp, microbatch}))))
        due.push_back(microbatch);
    }
    return due;
  }

  void measure_round(int tp, const std::vector<int>& microbatches) {
    const std::vector<StackBench::ByKind> measured = crowd_.measure(tp, microbatches, options_);
    for (size_t i = 0; i < measured.size(); ++i) {
      journal_.add(tp, microbatches[i], measured[i]);
      put_cell(tp, microbatches[i]);
    }
    sort_cells(profile_);
    save_profile_file(profile_, file_);
  }

  void put_cell(int tp, int microbatch) {
    const StackBench::ByKind cell = typical(journal_.rounds().at({tp, microbatch}));
    for (size_t k = 0; k < kLayerKinds.size(); ++k)
      put(profile_, {microbatch, tp, kLayerKinds[k], cell[k].times, cell[k].samples, cell[k].outliers,
                     cell[k].relative_error});
  }

  const ProfileRequest& request_;
  const MeasuringOptions options_;
  const std::string file_;
  ProfileFile& profile_;
  CrowdBench crowd_;
  ProfileJournal journal_;
};

}  // namespace

std::string layer_profile_path(const std::string& directory, const JobSpec& job,
                               const std::string& gpu_type) {
  const ModelSpec& m = job.model;
  std::string rest;  // what is unlike the first transformers
  if (m.key_value_heads() != m.heads) rest += fmt::format("-kv{}", m.kv_heads);
  if (m.attention_window > 0) rest += fmt::format("-w{}", m.attention_window);
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
  const Benches benches = make_benches(job, request, device, outcome);

  const int ranks = ranks_of(request);
  MeasuredWith equipment = this_equipment(ranks);
  if (gpu) equipment.device = gpu->name();
  ProfileFile profile = earlier(outcome.layer_file, job, request.gpu_type, equipment, outcome);
  profile.gpu_type = request.gpu_type;
  profile.model = job.model;
  profile.precision = job.training.precision;
  profile.measured = equipment;
  measure_overheads(job, request, ranks, outcome, profile);
  tell(
      fmt::format("base memory {:.0f} MiB, {:.2f} ms per iteration and {:.2f} ms per MB of gradients "
                  "outside layers and links",
                  static_cast<double>(request.base_memory_bytes) / (1 << 20),
                  1e3 * profile.overheads.iteration_overhead_s, 1e9 * profile.overheads.sync_s_per_byte));

  for (auto& [tp, kinds] : benches)
    for (size_t k = 0; k < kLayerKinds.size(); ++k)
      put(profile, {tp, kLayerKinds[k], kinds[k]->sizes(kSizesMicrobatch)});
  std::vector<int> tps;
  for (const auto& [tp, kinds] : benches) tps.push_back(tp);
  const MeasuringOptions options =
      layer_options(request, tps.size() * request.microbatches.size(), ranks, outcome);
  LayerRounds rounds(job, request, ranks, options, outcome.layer_file, profile);
  rounds.measure(tps, advance);
  outcome.cells = rounds.tell_all(tell);
  return outcome;
}

}  // namespace sailor
