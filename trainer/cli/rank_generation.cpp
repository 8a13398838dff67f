#include "trainer/cli/rank_generation.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "planner/process/seconds_since.h"
#include "planner/profile/profile_set.h"
#include "planner/spec/catalog.h"
#include "planner/spec/error.h"
#include "planner/spec/site_config.h"
#include "planner/spec/text_file.h"
#include "trainer/comm/host_memory.h"
#include "trainer/launch/agent.h"
#include "trainer/launch/rank_identity.h"
#include "trainer/process/process_identity.h"
#include "trainer/topology/machine_topology.h"
#include "trainer/topology/nic_environment.h"
#include "trainer/topology/process_binding.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kTellLoading = std::chrono::seconds(5);  // how often

CommOptions options_of(const RankResources& resources, EmulatedNetwork* links) {
  CommOptions options;
  options.links = links;
  options.encrypt = resources.encrypts_data;
  return options;
}

StepReport report_of(const TrainingSpec& training, const StepResult& result, int generation, int rank,
                     double step_s, int64_t peak_bytes) {
  return {.generation = generation,
          .rank = rank,
          .step = result.step + 1,
          .loss = result.loss,
          .z_loss = training.z_loss > 0 ? std::optional(result.z_loss) : std::nullopt,
          .gradient_norm = std::isfinite(result.grad_norm) ? std::optional(result.grad_norm) : std::nullopt,
          .learning_rate = result.learning_rate,
          .loss_scale = result.loss_scale > 0 ? std::optional(result.loss_scale) : std::nullopt,
          .skipped = result.skipped,
          .spikes = training.on_spike ? std::optional(result.spikes) : std::nullopt,
          .layer_norms = result.layer_norms,
          .gradient_signal = result.noise ? std::optional(result.noise->signal) : std::nullopt,
          .gradient_noise = result.noise ? std::optional(result.noise->noise) : std::nullopt,
          .data_digest = result.data_digest,
          .step_s = step_s,
          .phases_s = {{"forward", result.forward_s},
                       {"backward", result.backward_s},
                       {"wait", result.wait_s},
                       {"gradient_sync", result.gradient_sync_s},
                       {"update", result.update_s}},
          .peak_rss_bytes = peak_bytes,
          .max_in_flight = result.max_in_flight,
          .tasks = result.tasks};
}

// The loss on data that is not trained on, when the job wants it.
class Validation {
 public:
  explicit Validation(const JobSpec& job) : job_(job) {
    for (const ValidationSet& set : job.data.validation)
      sets_.emplace_back(set.name, TokenData::open_validation(job, set));
  }

  // After `steps_done` steps; the same answer on every rank.
  ValidationLosses losses(RankTrainer& trainer, int64_t steps_done) const {
    const ValidationSpec& spec = job_.training.validation;
    ValidationLosses losses;
    if (steps_done % spec.every_steps != 0 && steps_done != job_.training.steps) return losses;
    const int64_t sequences = spec.sequences > 0 ? spec.sequences : 4 * job_.training.global_batch;
    for (const auto& [name, data] : sets_) losses[name] = trainer.evaluate(data, sequences);
    return losses;
  }

 private:
  const JobSpec& job_;
  std::vector<std::pair<std::string, TokenData>> sets_;  // by name
};

// Tells how long the present step has been going on (RankResources::step_began_ns), while it lives.
class InStep {
 public:
  explicit InStep(std::atomic<int64_t>& began_ns) : began_ns_(began_ns) {
    began_ns_ = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
  }
  ~InStep() { began_ns_ = 0; }
  InStep(const InStep&) = delete;
  InStep& operator=(const InStep&) = delete;

 private:
  std::atomic<int64_t>& began_ns_;
};

void add(EmulatedDevice::Counters& sum, const EmulatedDevice::Counters& more) {
  sum.tasks += more.tasks;
  sum.overrun_tasks += more.overrun_tasks;
  sum.overrun_s += more.overrun_s;
  sum.emulated_s += more.emulated_s;
}

}  // namespace

std::vector<Endpoint> endpoints_of(const Generation& assignment) {
  std::vector<Endpoint> endpoints;
  for (const GenerationRank& rank : assignment.ranks)
    endpoints.push_back({rank.address, static_cast<uint16_t>(rank.port)});
  return endpoints;
}

RankGeneration::EmulatedParts RankGeneration::emulated_parts(const JobSpec& job, const Plan& plan,
                                                             const RankSlot& slot,
                                                             const std::string& run_directory) {
  if (!std::filesystem::exists(site_config_path())) return {};
  const SiteConfig site = load_site_config(site_config_path());
  const Catalog catalog = load_catalog(site.catalog);
  bool any = false;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    for (const PlanStage& stage : pipeline.stages) any = any || catalog.at(stage.gpu_type).emulation;
  }
  if (!any) return {};
  const ProfileSet profiles = load_profiles(site.profiles, job_under(plan, job), catalog);
  EmulatedParts emulation;
  emulation.network =
      std::make_unique<EmulatedNetwork>(plan, slot.rank, catalog, profiles.network, run_directory + "/links");
  const std::string& gpu_type = stage_of(plan, slot).gpu_type;
  if (!catalog.at(gpu_type).emulation) return emulation;
  auto it = profiles.layers.find(gpu_type);
  if (it == profiles.layers.end())
    throw InputError({catalog.file, 0},
                     fmt::format("GPU type {} is emulated, but there is no profile of this model to "
                                 "emulate it by; run `sailor profile`",
                                 gpu_type));
  emulation.device = std::make_unique<EmulatedDevice>(it->second, catalog.at(gpu_type).node.host_bytes_per_s);
  return emulation;
}

RankGeneration::RankGeneration(RankResources& resources, const Generation& assignment, int rank)
    : resources_(resources),
      number_(assignment.number),
      plan_(assignment.plan),
      drops_state_(assignment.ranks.at(static_cast<size_t>(rank)).drops_state),
      givers_(static_cast<int>(assignment.ranks.size()) - num_ranks(plan_)),
      slot_(RankLayout(plan_).slots().at(static_cast<size_t>(rank))),
      checkpoints_(resources.job.checkpoint.directory.empty()
                       ? ""
                       : relative_to_file(resources.job.checkpoint.directory, resources.job.file)),
      address_(endpoints_of(assignment).at(static_cast<size_t>(rank)).host),
      emulation_(emulated_parts(resources.job, plan_, slot_, resources.run_directory)),
      factory_(rank, endpoints_of(assignment), resources.secret, resources.listener,
               options_of(resources, emulation_.network.get()), assignment.scope) {
  if (emulation_.device) return;
  if (!resources_.gpu) {
    resources_.gpu = open_gpu({.index_on_node = slot_.gpu, .rank = slot_.rank, .ranks = num_ranks(plan_)});
    if (!resources_.gpu) {
      if (const int gpus = gpu_count(); gpus > 0)
        std::cerr << fmt::format("trains on CPUs: {} ranks, and {} GPUs\n", num_ranks(plan_), gpus);
      return;
    }
    std::cerr << fmt::format("trains on {}: {}\n", resources_.gpu->name(), set_arithmetic());
    resources_.computes.emplace(resources_.gpu->device());
  }
  gpu_factory_ = resources_.gpu->plane(factory_, CommOptions());
}

RankGeneration::~RankGeneration() {
  if (emulation_.device) add(resources_.counters, emulation_.device->counters());
}

void RankGeneration::abort() noexcept {
  if (gpu_factory_) gpu_factory_->abort();
  factory_.abort();
}

std::optional<DevicePlane> RankGeneration::agree_on_plane() {
  std::vector<int> ranks(static_cast<std::size_t>(num_ranks(plan_)));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<unsigned char> have(ranks.size());
  have[static_cast<std::size_t>(slot_.rank)] = gpu_factory_ ? 1 : 0;
  factory_.create("devices", ranks)->all_reduce(have.data(), have.size(), ElementType::u8, ReduceOp::max);
  const auto with = std::find(have.begin(), have.end(), 1), without = std::find(have.begin(), have.end(), 0);
  if (with == have.end()) return std::nullopt;
  if (without == have.end()) {
    if (resources_.encrypts_data && RankLayout(plan_).nodes().size() > 1)
      tell(
          "warning: encrypt_data is for what goes over sockets; NCCL does not encrypt what GPUs of different "
          "nodes send each other");
    return DevicePlane{resources_.gpu->device(), *gpu_factory_};
  }
  throw std::runtime_error(
      fmt::format("rank {} has a GPU and rank {} has none (an emulated type, or CPUs): they cannot train "
                  "together; leave one kind out of resources.max_gpus",
                  with - have.begin(), without - have.begin()));
}

// Of the memory that a plan's prediction is about.
int64_t RankGeneration::peak_bytes() const {
  return gpu_factory_ ? resources_.gpu->device().used_bytes() : peak_resident_bytes();
}

std::string RankGeneration::memory_error(const std::string& cause) const {
  constexpr double kGiB = 1 << 30;
  Device& device = resources_.gpu->device();
  const std::string predicted =
      plan_.prediction ? fmt::format("predicted at most {:.1f} GiB per GPU",
                                     static_cast<double>(plan_.prediction->peak_memory_bytes) / kGiB)
                       : "without a prediction";
  return fmt::format(
      "the plan does not fit into the memory of the GPU: {}, it has {:.1f} GiB, of which {:.1f} GiB are "
      "in use by all processes; the same plan would fail again: measure the model on this GPU type "
      "(sailor profile), or leave more memory free ({})",
      predicted, static_cast<double>(device.total_bytes()) / kGiB,
      static_cast<double>(device.used_bytes()) / kGiB, cause);
}

// Close to its GPU, when this machine really has it.
void RankGeneration::bind_to_gpu() {
  const bool here = !resources_.job.elastic.enabled || slot_.node == node_name();
  if (emulation_.device || resources_.bound || slot_.gpu < 0 || !here) return;
  resources_.bound = true;
  set_nic_environment(address_);
  const MachineTopology machine = discover_topology();
  if (slot_.gpu >= static_cast<int>(machine.bindings.size())) return;
  const std::string cpus = bind_process(machine.bindings[static_cast<size_t>(slot_.gpu)]);
  if (!cpus.empty()) std::cerr << fmt::format("bound to CPUs {}, close to GPU {}\n", cpus, slot_.gpu);
}

Started RankGeneration::start(RankGeneration* previous) {
  announce_generation(slot_, number_);
  bind_to_gpu();
  const auto begin = Clock::now();
  const std::optional<DevicePlane> on = agree_on_plane();
  const bool kept =
      RankTrainer::make_room(previous ? previous->trainer() : nullptr, factory_,
                             {.needed_bytes = RankTrainer::state_bytes(resources_.job, plan_, slot_.rank),
                              .drop_state = drops_state_});
  if (!kept) std::cerr << "no memory for the states of two plans: frees its own state\n";
  auto trainer = std::make_unique<RankTrainer>(resources_.job, plan_, slot_.rank, factory_, resources_.data,
                                               emulation_.device.get(), on ? &*on : nullptr);
  Started started{.generation = number_,
                  .rank = slot_.rank,
                  .groups_s = seconds_since(begin),
                  .pid = getpid(),
                  .start_ticks = process_start_ticks(),
                  .device_contexts = Device::opened()};
  const auto restore = Clock::now();
  trainer->tell_loading([this, told = restore](int64_t done, int64_t total) mutable {
    if (Clock::now() - told < kTellLoading || total == 0) return;
    told = Clock::now();
    tell(fmt::format("checkpoint: {:.0f} % of {:.1f} GB read",
                     100.0 * static_cast<double>(done) / static_cast<double>(total),
                     1e-9 * static_cast<double>(total)));
  });
  const Restored restored = trainer->restore(previous ? previous->trainer() : nullptr, checkpoints_, givers_);
  trainer_ = std::move(trainer);
  started.state_s = seconds_since(restore);
  started.steps_done = trainer_->next_step();
  started.state_from = to_string(restored.from);
  started.bytes_received = restored.bytes_received;
  for (const std::string& line : restored.skipped) tell("checkpoint: " + line);
  if (restored.from == Restored::From::checkpoint)
    tell(fmt::format("checkpoint: resuming after step {} from {}{}", restored.steps_done, restored.path,
                     restored.steps_done < resources_.job.training.steps ? "" : "; training is complete"));
  return started;
}

void RankGeneration::train(GenerationInbox& inbox) {
  const Validation validation(resources_.job);
  while (trainer_->next_step() < resources_.job.training.steps) {
    const std::optional<Interrupt> order = inbox.stop_after_step();
    bool stop = order && steps_done() + 1 >= order->after_step;
    StepReport report = do_step(stop);
    stepped_ = true;
    report.validation = validation.losses(*trainer_, report.step);
    resources_.control.send(report);
    save_if_due();
    if (stop && steps_done() < resources_.job.training.steps) {
      inbox.wait_until_interrupted();  // the order may reach this rank later than another
      if (const auto given = inbox.stop_after_step(); given && given->save) save_now();
      return;
    }
    if (inbox.interrupted()) return;
  }
  finish();
}

// `stop`: whether this rank wants all to stop after the step, then whether any does.
StepReport RankGeneration::do_step(bool& stop) {
  if (trainer_->next_step() + 1 == resources_.trace_step) trainer_->trace_next_step();
  const InStep in_step(resources_.step_began_ns);
  const auto start = Clock::now();
  const StepResult result = trainer_->step(stop);
  stop = result.stop;
  for (const std::string& line : result.diverged)
    tell(fmt::format("warning: after step {} {}{}", result.step + 1, line,
                     resources_.job.training.replicas.on_divergence == OnDivergence::heal
                         ? ", and has been given theirs"
                         : ""));
  resources_.max_in_flight = std::max(resources_.max_in_flight, result.max_in_flight);
  return report_of(resources_.job.training, result, number_, slot_.rank, seconds_since(start), peak_bytes());
}

// Starts to save, and says what came of those before; of the last one before this returns.
void RankGeneration::save_if_due() {
  if (checkpoints_.empty()) return;
  const int64_t every = resources_.job.checkpoint.every_steps;
  const bool last = steps_done() == resources_.job.training.steps;
  if ((every > 0 && steps_done() % every == 0) || last) save();
  for (const SaveResult& result : trainer_->saves(/*wait=*/last)) report(result);
}

void RankGeneration::save() {
  trainer_->save(checkpoints_, resources_.job.checkpoint.keep);
  saving_step_ = steps_done();
}

// Saves unless the state of this step is being saved already, and waits until it is on disk.
void RankGeneration::save_now() {
  if (checkpoints_.empty()) return;
  if (saving_step_ != steps_done()) save();
  for (const SaveResult& result : trainer_->saves(/*wait=*/true)) report(result);
}

void RankGeneration::report(const SaveResult& result) {
  if (result.error.empty()) {
    tell(fmt::format("checkpoint: {} written, {:.1f} MB in {:.2f} s; training paused for {:.2f} s",
                     result.saved.path, 1e-6 * static_cast<double>(result.saved.bytes), result.written_s,
                     result.stopped_s),
         result.stopped_s + result.written_s);
  } else if (resources_.job.checkpoint.stop_on_error) {
    throw std::runtime_error(result.error);
  } else {
    tell(fmt::format("warning: the state after step {} was not saved: {}; training continues",
                     result.steps_done, result.error));
  }
}

// Rank 0 speaks for all.
void RankGeneration::tell(const std::string& text, std::optional<double> save_s) {
  if (slot_.rank != 0) return;
  resources_.control.send(
      Note{.generation = number_, .rank = 0, .step = steps_done(), .text = text, .save_s = save_s});
}

void RankGeneration::finish() {
  EmulatedDevice::Counters counters = resources_.counters;
  if (emulation_.device) add(counters, emulation_.device->counters());
  resources_.control.send(Finished{.generation = number_,
                                   .rank = slot_.rank,
                                   .peak_rss_bytes = peak_bytes(),
                                   .max_in_flight = resources_.max_in_flight,
                                   .paced_tasks = counters.tasks,
                                   .overrun_tasks = counters.overrun_tasks,
                                   .overrun_s = counters.overrun_s,
                                   .paced_s = counters.emulated_s});
}

}  // namespace sailor
