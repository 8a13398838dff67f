#include "tests/equality/backends.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>

#include "planner/plan/rank_layout.h"
#include "planner/process/scratch_directory.h"
#include "trainer/comm/bootstrap.h"
#include "trainer/comm/socket_plane.h"
#include "trainer/comm/thread_plane.h"
#include "trainer/gpu/gpu.h"
#include "trainer/launch/local_ranks.h"
#include "trainer/model/element_types.h"
#include "trainer/model/torch_device.h"
#include "trainer/parallel/gradient_buffer.h"
#include "trainer/topology/gpu_environment.h"

namespace sailor::equality {
namespace {

const CommOptions kCommOptions{std::chrono::minutes(2)};

std::string outcome_file(const std::string& directory, int rank) {
  return fmt::format("{}/rank.{}", directory, rank);
}
std::string reference_file(const std::string& directory) {
  return directory + "/reference";
}

int run_program(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);  // stdout is for the table
  pid_t pid = 0;
  const int rc = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (rc != 0) throw std::runtime_error(fmt::format("cannot start {}: {}", arguments[0], std::strerror(rc)));
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<std::string> mpi_command(int ranks, const std::vector<std::string>& program) {
  std::vector<std::string> command = {"mpirun",
                                      "--oversubscribe",
                                      "--bind-to",
                                      "none",
                                      "--mca",
                                      "btl",
                                      "self,tcp",
                                      "-x",
                                      "OMP_NUM_THREADS=1",
                                      "-n",
                                      std::to_string(ranks)};
  if (::geteuid() == 0) command.insert(command.begin() + 1, "--allow-run-as-root");
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

// Calls `work` with the rank's GPU and its plane on top of `factory`, or with null if it has none.
void on_device(int rank, int ranks, bool gpus, CommFactory& factory,
               const std::function<void(const DevicePlane*)>& work) {
  const std::unique_ptr<Gpu> gpu = gpus ? open_gpu({.rank = rank, .ranks = ranks}) : nullptr;
  if (gpus && !gpu) throw std::runtime_error("there are fewer GPUs than ranks");
  if (!gpu) return work(nullptr);
  const std::unique_ptr<CommFactory> plane = gpu->plane(factory, kCommOptions);
  const DevicePlane on{gpu->device(), *plane};
  const ComputeOn computes(on.device);
  work(&on);
}

using RankWork = std::function<void(int rank, CommFactory& factory, const DevicePlane* on)>;

// Runs `work` on a thread for each rank, and throws the first error of any.
void run_ranks(int ranks, bool gpus, const RankWork& work) {
  ThreadHub hub(ranks, kCommOptions);
  std::vector<std::unique_ptr<CommFactory>> factories;
  for (int rank = 0; rank < ranks; ++rank) factories.push_back(hub.factory(rank));

  std::mutex mutex;
  std::exception_ptr first_error;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        CommFactory& factory = *factories[static_cast<std::size_t>(rank)];
        on_device(rank, ranks, gpus, factory, [&](const DevicePlane* on) { work(rank, factory, on); });
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first_error) first_error = std::current_exception();
        for (const auto& factory : factories) factory->abort();  // no rank must wait for this one
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first_error) std::rethrow_exception(first_error);
}

// Calls run(segment) for the parts of the training, one after the other.
template <class Run>
void for_each_segment(const Case& c, const Run& run) {
  if (!c.second_plan) return run(Segment{.plan = c.plan, .end = c.steps});
  const ScratchDirectory directory;
  run(Segment{.plan = c.plan, .end = c.steps, .save_to = directory.path()});
  run(Segment{.plan = *c.second_plan, .end = 2 * c.steps, .load_from = directory.path()});
}

}  // namespace

Outcome run_on_threads(const Case& c, const std::vector<ReferenceStep>& reference, bool gpus) {
  Outcome outcome;
  std::mutex mutex;
  for_each_segment(c, [&](const Segment& segment) {
    run_ranks(num_ranks(segment.plan), gpus, [&](int rank, CommFactory& factory, const DevicePlane* on) {
      const Outcome mine = train_and_compare(c, segment, reference, rank, factory, on);
      const std::lock_guard lock(mutex);
      outcome.add(mine);
    });
  });
  return outcome;
}

std::vector<bool> skipped_on_threads(const Case& c, bool gpus) {
  std::vector<bool> skipped;
  for_each_segment(c, [&](const Segment& segment) {
    std::vector<std::vector<bool>> by_rank(static_cast<std::size_t>(num_ranks(segment.plan)));
    run_ranks(num_ranks(segment.plan), gpus, [&](int rank, CommFactory& factory, const DevicePlane* on) {
      by_rank[static_cast<std::size_t>(rank)] = train_and_list_skipped(c, segment, rank, factory, on);
    });
    for (const std::vector<bool>& of_rank : by_rank) {
      if (of_rank != by_rank.front()) throw std::runtime_error("ranks skipped different steps");
    }
    skipped.insert(skipped.end(), by_rank.front().begin(), by_rank.front().end());
  });
  return skipped;
}

Outcome run_in_processes(const CaseOptions& options, const Case& c,
                         const std::vector<ReferenceStep>& reference, bool mpi, bool gpus) {
  const ScratchDirectory directory;
  save_reference(reference, reference_file(directory.path()));
  const int ranks = num_ranks(c.plan);
  std::vector<std::string> program = {std::filesystem::read_symlink("/proc/self/exe").string(),
                                      "--as-rank-in",
                                      directory.path(),
                                      "--seed",
                                      std::to_string(options.seed),
                                      "--index",
                                      std::to_string(options.index),
                                      "--dtype",
                                      to_string(options.precision),
                                      "--family",
                                      options.family};
  if (!options.layout.empty()) program.insert(program.end(), {"--layout", options.layout});
  if (options.zero) {
    program.emplace_back("--zero");
    program.emplace_back(to_string(*options.zero));
  }
  if (options.features) {
    std::vector<std::string> names;
    for (const PlanFeature feature : *options.features) names.emplace_back(to_string(feature));
    program.emplace_back("--features");
    program.push_back(names.empty() ? "none" : fmt::format("{}", fmt::join(names, ",")));
  }
  if (options.lora) program.emplace_back("--lora");
  if (options.sequence_parallel) program.emplace_back("--sequence-parallel");
  if (options.muon) program.emplace_back("--muon");
  if (gpus) program.emplace_back("--gpus");
  const int code = mpi ? run_program(mpi_command(ranks, program)) : run_local_ranks(ranks, program);
  if (code != 0) throw std::runtime_error(fmt::format("the ranks ended with {}", code));

  Outcome all;
  for (int rank = 0; rank < ranks; ++rank) {
    std::ifstream in(outcome_file(directory.path(), rank));
    Outcome one;
    if (!(in >> one.loss_err >> one.grad_err >> one.max_in_flight >> one.in_flight_ok)) {
      throw std::runtime_error(fmt::format("rank {} left no outcome", rank));
    }
    std::getline(in >> std::ws, one.worst);
    all.add(one);
  }
  return all;
}

int run_as_rank(const CaseOptions& options, const std::string& directory, bool gpus) {
  set_gpu_environment();
  const Case c = make_case(options);
  const auto reference =
      load_reference(reference_file(directory), gradient_type(scalar_type(options.precision)));
  Listener listener("127.0.0.1");
  const BootstrapResult boot = bootstrap(to_text(RankCard{{"127.0.0.1", listener.port()}, "", ::getpid()}));
  listener.start(boot.secret);
  std::vector<Endpoint> endpoints;
  for (const std::string& card : boot.cards) endpoints.push_back(parse_rank_card(card).endpoint);

  SocketFactory factory(boot.rank, endpoints, boot.secret, listener, kCommOptions);
  Outcome outcome;
  on_device(boot.rank, boot.size, gpus, factory, [&](const DevicePlane* on) {
    outcome = train_and_compare(c, {.plan = c.plan, .end = c.steps}, reference, boot.rank, factory, on);
  });
  std::ofstream out(outcome_file(directory, boot.rank));
  out << fmt::format("{} {} {} {} {}\n", std::min(outcome.loss_err, 1e300), std::min(outcome.grad_err, 1e300),
                     outcome.max_in_flight, outcome.in_flight_ok ? 1 : 0, outcome.worst);
  return out.flush() ? 0 : 1;
}

}  // namespace sailor::equality
