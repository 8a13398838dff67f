#include "tests/checkpoint_crash/victims.h"

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "planner/plan/rank_layout.h"
#include "tests/checkpoint_crash/training.h"
#include "trainer/comm/socket_plane.h"

namespace sailor::checkpoint_crash {
namespace {

constexpr int kFromStarter = 3, kToStarter = 4;

void write_all(int fd, const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = write(fd, from, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw std::runtime_error("a pipe is closed");
    from += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

// False at the end of what was written.
bool read_all(int fd, void* data, std::size_t bytes) {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = read(fd, to, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

Victims::Victims(uint64_t seed, int ranks, const std::string& directory) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  for (int rank = 0; rank < ranks; ++rank) {
    int there[2], back[2];
    if (pipe2(there, O_CLOEXEC) != 0 || pipe2(back, O_CLOEXEC) != 0)
      throw std::runtime_error("cannot make a pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // By way of numbers that none of the four can be.
    posix_spawn_file_actions_adddup2(&actions, there[0], 1000);
    posix_spawn_file_actions_adddup2(&actions, back[1], 1001);
    posix_spawn_file_actions_adddup2(&actions, 1000, kFromStarter);
    posix_spawn_file_actions_adddup2(&actions, 1001, kToStarter);
    posix_spawn_file_actions_addclose(&actions, 1000);
    posix_spawn_file_actions_addclose(&actions, 1001);
    std::vector<std::string> arguments = {
        program, "--seed", std::to_string(seed), "--as-rank", std::to_string(rank), "--directory", directory};
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    Process process;
    const int error = posix_spawn(&process.pid, program.c_str(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(there[0]);
    close(back[1]);
    process.to = there[1];
    process.from = back[0];
    if (error != 0) process.pid = -1;
    processes_.push_back(process);
    if (error != 0)
      throw std::runtime_error(fmt::format("cannot start {}: {}", program, std::strerror(error)));
  }
  const JobSecret secret = make_job_secret();
  std::vector<uint16_t> ports(processes_.size());
  for (std::size_t i = 0; i < processes_.size(); ++i)
    if (!read_all(processes_[i].from, &ports[i], sizeof ports[i]))
      throw std::runtime_error("a rank did not start");
  for (const Process& process : processes_) {
    write_all(process.to, secret.data(), secret.size());
    write_all(process.to, ports.data(), ports.size() * sizeof ports[0]);
  }
  for (const Process& process : processes_) {
    int64_t begun = 0;
    if (!read_all(process.from, &begun, sizeof begun))
      throw std::runtime_error("a rank did not begin to train");
  }
}

Victims::~Victims() {
  kill_all();
  for (const Process& process : processes_) {
    close(process.to);
    close(process.from);
  }
}

void Victims::kill_all() {
  for (const Process& process : processes_)
    if (process.pid > 0) kill(process.pid, SIGKILL);
  for (Process& process : processes_) {
    if (process.pid > 0) waitpid(process.pid, nullptr, 0);
    process.pid = -1;
  }
}

void Victims::kill_one(int rank) {
  kill(processes_.at(static_cast<std::size_t>(rank)).pid, SIGKILL);
  for (int tenths = 0; tenths < 50; ++tenths) {
    bool any = false;
    for (Process& process : processes_) {
      if (process.pid > 0 && waitpid(process.pid, nullptr, WNOHANG) == process.pid) process.pid = -1;
      any = any || process.pid > 0;
    }
    if (!any) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  kill_all();
}

int64_t Victims::last_saved() {
  int64_t last = -1, saved = -1;
  while (read_all(processes_.at(0).from, &saved, sizeof saved)) last = saved;
  return last;
}

int run_victim(uint64_t seed, int rank, const std::string& directory) {
  at::set_num_threads(1);
  const Training training = draw_training(seed);
  const auto ranks = static_cast<std::size_t>(num_ranks(training.plan));
  Listener listener("127.0.0.1");
  const uint16_t port = listener.port();
  write_all(kToStarter, &port, sizeof port);
  JobSecret secret{};
  std::vector<uint16_t> ports(ranks);
  if (!read_all(kFromStarter, secret.data(), secret.size()) ||
      !read_all(kFromStarter, ports.data(), ranks * sizeof ports[0]))
    return 1;
  listener.start(secret);
  std::vector<Endpoint> endpoints;
  for (const uint16_t p : ports) endpoints.push_back({"127.0.0.1", p});
  SocketFactory factory(rank, endpoints, secret, listener, {std::chrono::seconds(20)});
  RankTrainer trainer(training.job, training.plan, rank, factory, training.data);
  trainer.load(directory);
  const int64_t begun = 0;
  write_all(kToStarter, &begun, sizeof begun);
  while (trainer.next_step() < training.job.training.steps) {
    trainer.step();
    trainer.save(directory, /*keep=*/2);
    const bool last = trainer.next_step() == training.job.training.steps;
    for (const SaveResult& result : trainer.saves(last)) {
      if (!result.error.empty()) throw std::runtime_error(result.error);
      if (rank == 0) write_all(kToStarter, &result.steps_done, sizeof result.steps_done);
    }
  }
  return 0;
}

}  // namespace sailor::checkpoint_crash
