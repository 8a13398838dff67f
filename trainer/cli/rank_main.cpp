// sailor-rank: one trainer rank. mpirun starts it on every node; it bootstraps, detaches, and trains under
// the controller's lease. Everything it needs to know comes from its environment (sailor run sets it) and
// from the run directory.
#include <ATen/Parallel.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "planner/plan/plan_json.h"
#include "planner/plan/rank_layout.h"
#include "planner/profile/profile_set.h"
#include "planner/spec/catalog.h"
#include "planner/spec/error.h"
#include "planner/spec/site_config.h"
#include "planner/spec/text_file.h"
#include "trainer/comm/mpi_bootstrap.h"
#include "trainer/comm/socket_plane.h"
#include "trainer/elastic/agent.h"
#include "trainer/elastic/control_client.h"
#include "trainer/elastic/detached_start.h"
#include "trainer/elastic/rank_assignment.h"
#include "trainer/elastic/run_directory.h"
#include "trainer/pipeline/emulated_device.h"
#include "trainer/pipeline/emulated_network.h"
#include "trainer/pipeline/host_memory.h"
#include "trainer/pipeline/rank_trainer.h"
#include "trainer/pipeline/tensor_cache.h"
#include "trainer/topology/machine_topology.h"
#include "trainer/topology/process_binding.h"

namespace {

namespace fs = std::filesystem;
using namespace sailor;

constexpr double kControllerWait_s = 30;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (!value)
    throw std::runtime_error(fmt::format("{} is not set: this program is started by sailor run", name));
  return value;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// What this cluster only emulates of a plan, as far as one rank has to do with it.
struct EmulatedParts {
  std::unique_ptr<EmulatedDevice> device;    // when the rank's GPU type is emulated
  std::unique_ptr<EmulatedNetwork> network;  // when any GPU type of the plan is
};

EmulatedParts emulated_parts(const JobSpec& job, const Plan& plan, const RankSlot& slot,
                             const std::string& run_directory) {
  if (!fs::exists(site_config_path())) return {};
  const SiteConfig site = load_site_config(site_config_path());
  const Catalog catalog = load_catalog(site.catalog);
  bool any = false;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    for (const PlanStage& stage : pipeline.stages) any = any || catalog.at(stage.gpu_type).emulation;
  }
  if (!any) return {};
  const ProfileSet profiles = load_profiles(site.profiles, job, catalog);
  EmulatedParts emulation;
  emulation.network =
      std::make_unique<EmulatedNetwork>(plan, slot.rank, catalog, profiles.network, run_directory + "/links");
  const std::string& gpu_type =
      plan.pipelines[static_cast<size_t>(slot.pipeline)].stages[static_cast<size_t>(slot.stage)].gpu_type;
  if (!catalog.at(gpu_type).emulation) return emulation;
  auto it = profiles.layers.find(gpu_type);
  if (it == profiles.layers.end())
    throw InputError({catalog.file, 0},
                     fmt::format("GPU type {} is emulated, but there is no profile of this model to "
                                 "emulate it by; run `sailor profile`",
                                 gpu_type));
  emulation.device = std::make_unique<EmulatedDevice>(it->second);
  return emulation;
}

// What this process is after the bootstrap.
struct Place {
  RankSlot slot;
  std::vector<Endpoint> endpoints;  // by rank of the plan
  JobSecret secret{};
};

Place bootstrap(const Plan& plan, const std::string& local_address, uint16_t port, bool local) {
  const BootstrapResult world =
      mpi_bootstrap(to_text(RankCard{{local_address, port}, node_name(), getpid()}));
  std::vector<RankCard> cards;
  std::vector<std::string> nodes;
  for (const std::string& text : world.cards) {
    cards.push_back(parse_rank_card(text));
    nodes.push_back(cards.back().node);
  }
  std::vector<int> rank_of;
  if (local) {
    for (int i = 0; i < world.size; ++i) rank_of.push_back(i);
  } else {
    rank_of = assign_ranks(plan, nodes);
  }
  Place place;
  place.secret = world.secret;
  place.endpoints.resize(cards.size());
  for (size_t i = 0; i < cards.size(); ++i)
    place.endpoints[static_cast<size_t>(rank_of[i])] = cards[i].endpoint;
  place.slot = RankLayout(plan).slots().at(static_cast<size_t>(rank_of[static_cast<size_t>(world.rank)]));
  return place;
}

void redirect_output(const std::string& file) {
  const int input = open("/dev/null", O_RDONLY);
  const int output = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
  if (input < 0 || output < 0)
    throw std::runtime_error(fmt::format("cannot write {}: {}", file, std::strerror(errno)));
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  close(input);
  close(output);
}

// Close to its GPU, when this machine really has it.
void bind_to_gpu(int gpu) {
  const MachineTopology machine = discover_topology();
  if (gpu < 0 || gpu >= static_cast<int>(machine.bindings.size())) return;
  const std::string cpus = bind_process(machine.bindings[static_cast<size_t>(gpu)]);
  if (!cpus.empty()) std::cerr << fmt::format("bound to processors {}, close to GPU {}\n", cpus, gpu);
}

// Ends the process from the control channel's thread, whatever the trainer's thread is doing.
[[noreturn]] void end_process(const std::string& text, int exit_code) {
  if (!text.empty()) std::cerr << "sailor-rank: " << text << std::endl;
  _exit(exit_code);
}

StepReport report_of(const StepResult& result, int rank, double step_s) {
  return {.rank = rank,
          .step = result.step + 1,
          .loss = result.loss,
          .gradient_norm = result.grad_norm,
          .learning_rate = result.learning_rate,
          .step_s = step_s,
          .phases_s = {{"forward", result.forward_s},
                       {"backward", result.backward_s},
                       {"wait", result.wait_s},
                       {"gradient_sync", result.gradient_sync_s},
                       {"update", result.update_s}},
          .peak_rss_bytes = peak_resident_bytes(),
          .max_in_flight = result.max_in_flight,
          .tasks = result.tasks};
}

// The loss on data that is not trained on, when the job wants it.
class Validation {
 public:
  explicit Validation(const JobSpec& job) : job_(job) {
    if (!job.data.validation.empty()) data_ = TokenData::open_validation(job);
  }

  // After `steps_done` steps; the same answer on every rank.
  std::optional<double> loss(RankTrainer& trainer, int64_t steps_done) const {
    const ValidationSpec& spec = job_.training.validation;
    if (!data_ || (steps_done % spec.every_steps != 0 && steps_done != job_.training.steps))
      return std::nullopt;
    return trainer.evaluate(*data_, spec.sequences > 0 ? spec.sequences : 4 * job_.training.global_batch);
  }

 private:
  const JobSpec& job_;
  std::optional<TokenData> data_;
};

// The job's checkpoints, when it wants any.
class Checkpoints {
 public:
  Checkpoints(const JobSpec& job, const RankSlot& slot, ControlClient& control)
      : job_(job), slot_(slot), control_(control) {
    if (!job.checkpoint.directory.empty()) directory_ = relative_to_file(job.checkpoint.directory, job.file);
  }

  // Goes on from the newest one.
  void resume(RankTrainer& trainer) const {
    if (directory_.empty()) return;
    const LoadedCheckpoint loaded = trainer.load(directory_);
    for (const std::string& line : loaded.skipped) tell(trainer, "checkpoint: " + line);
    if (loaded.path.empty()) return;
    tell(trainer, fmt::format("checkpoint: going on after step {} from {}{}", loaded.steps_done, loaded.path,
                              loaded.steps_done < job_.training.steps ? "" : "; nothing is left to do"));
  }

  // Starts to save, and says what came of those before; of the last one before this returns.
  void save_if_due(RankTrainer& trainer) const {
    if (directory_.empty()) return;
    const int64_t done = trainer.next_step(), every = job_.checkpoint.every_steps;
    const bool last = done == job_.training.steps;
    if ((every > 0 && done % every == 0) || last) trainer.save(directory_, job_.checkpoint.keep);
    for (const SaveResult& result : trainer.saves(/*wait=*/last)) report(trainer, result);
  }

 private:
  void report(const RankTrainer& trainer, const SaveResult& result) const {
    if (result.error.empty()) {
      tell(trainer,
           fmt::format("checkpoint: {} written, {:.1f} MB in {:.2f} s; training stood still for {:.2f} s",
                       result.saved.path, 1e-6 * static_cast<double>(result.saved.bytes), result.written_s,
                       result.stopped_s));
    } else if (job_.checkpoint.stop_on_error) {
      throw std::runtime_error(result.error);
    } else {
      tell(trainer, fmt::format("warning: the state after step {} was not saved: {}; training goes on",
                                result.steps_done, result.error));
    }
  }

  void tell(const RankTrainer& trainer, const std::string& text) const {
    if (slot_.rank == 0) control_.send(Note{.rank = 0, .step = trainer.next_step(), .text = text});
  }

  const JobSpec& job_;
  const RankSlot& slot_;
  ControlClient& control_;
  std::string directory_;
};

void train(const JobSpec& job, const Plan& plan, const Place& place, Listener& listener,
           ControlClient& control, const std::string& run_directory) {
  const RankSlot& slot = place.slot;
  const TokenData data = TokenData::open(job);
  const EmulatedParts emulation = emulated_parts(job, plan, slot, run_directory);
  const EmulatedDevice* device = emulation.device.get();
  if (!device) bind_to_gpu(slot.gpu);
  CommOptions options;
  options.links = emulation.network.get();
  SocketFactory factory(slot.rank, place.endpoints, place.secret, listener, options);
  RankTrainer trainer(job, plan, slot.rank, factory, data, emulation.device.get());
  const Validation validation(job);
  const int64_t trace_step = std::stoll(variable("SAILOR_TRACE_STEP"));
  const Checkpoints checkpoints(job, slot, control);
  checkpoints.resume(trainer);
  int max_in_flight = 0;
  for (int64_t step = trainer.next_step(); step < job.training.steps; ++step) {
    if (step + 1 == trace_step) trainer.trace_next_step();
    const auto start = std::chrono::steady_clock::now();
    const StepResult result = trainer.step();
    const double step_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    max_in_flight = std::max(max_in_flight, result.max_in_flight);
    StepReport report = report_of(result, slot.rank, step_s);
    report.validation_loss = validation.loss(trainer, step + 1);
    control.send(report);
    checkpoints.save_if_due(trainer);
  }
  const EmulatedDevice::Counters counters = device ? device->counters() : EmulatedDevice::Counters{};
  control.send(Finished{.rank = slot.rank,
                        .peak_rss_bytes = peak_resident_bytes(),
                        .max_in_flight = max_in_flight,
                        .paced_tasks = counters.tasks,
                        .overrun_tasks = counters.overrun_tasks,
                        .overrun_s = counters.overrun_s,
                        .paced_s = counters.emulated_s});
  // The controller stops everybody when the last one has finished; peers may still need this rank's
  // connections until then.
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

int run() {
  DetachedStart start;
  const std::string directory = variable("SAILOR_RUN_DIRECTORY");
  JobSpec job = load_job_spec(directory + "/job.yaml", variable("SAILOR_JOB_DIRECTORY"));
  job.file = variable("SAILOR_JOB_DIRECTORY") + "/job.yaml";
  const Plan plan = load_plan(directory + "/plan.json");
  const ControlEndpoint endpoint = ControlEndpoint::from_environment();
  const ControlRoute route = find_control_route(endpoint, kControllerWait_s);

  // Other ranks reach this one by the address by which it reaches the controller: right for one machine, for
  // network namespaces and for a cluster alike.
  Listener listener(route.local_address);
  const Place place =
      bootstrap(plan, route.local_address, listener.port(), variable("SAILOR_LAUNCH") == "local");
  listener.start(place.secret);
  const std::string log = fmt::format("{}/logs/rank-{}.log", directory, place.slot.rank);
  redirect_output(log);
  start.release();

  ControlClient control(
      endpoint, route.controller_address,
      {.lease_expired =
           [&endpoint] {
             end_process(
                 fmt::format("the controller could not be reached for {:.0f} s; ending", endpoint.lease_s),
                 kFailed);
           },
       .stop = [](const Stop& stop) { end_process(stop.text, stop.exit_code); }});
  control.send(Hello{.role = ControlRole::rank,
                     .rank = place.slot.rank,
                     .node = node_name(),
                     .host = host_name(),
                     .pid = getpid(),
                     .generation = 1});
  // Ranks share a node's cores; more threads only when the user says so.
  if (!std::getenv("OMP_NUM_THREADS")) at::set_num_threads(1);

  Failure failure{.rank = place.slot.rank, .node = node_name(), .pid = getpid()};
  try {
    train(job, plan, place, listener, control, directory);
  } catch (const CommError& e) {
    failure.text = e.what();
    failure.peer_lost = true;
    failure.lost_peer = e.peer();
  } catch (const std::exception& e) {
    failure.text = e.what();
  }
  std::cerr << "sailor-rank: " << failure.text << std::endl;
  control.send(failure);
  // The controller's stop ends this process, with the job's reason in the log.
  std::this_thread::sleep_for(std::chrono::duration<double>(endpoint.lease_s));
  return kFailed;
}

}  // namespace

int main() {
  keep_freed_memory();
  use_tensor_cache();
  try {
    return run();
  } catch (const std::exception& e) {
    std::cerr << "sailor-rank on " << node_name() << ": " << e.what() << std::endl;
    return kFailed;
  }
}
