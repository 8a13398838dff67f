// What checkpoints cost, on one rank: training's time while one is written behind it, writing against a plain
// file that is synced, loading under another plan against plain reading. One CSV row each.
#include <ATen/Parallel.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "planner/cli/program.h"
#include "tests/bench/trainer/training.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/comm/host_memory.h"
#include "trainer/comm/thread_plane.h"
#include "trainer/pipeline/rank_trainer.h"
#include "trainer/pipeline/tensor_cache.h"

namespace sailor::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kChunk = std::size_t{4} << 20;  // of plain reading and writing

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class File {
 public:
  File(const std::string& path, int flags) : descriptor_(open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0)
      throw std::runtime_error(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  }
  ~File() { close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// As `dd bs=4M conv=fsync`.
double plain_write_s(const std::string& path, int64_t bytes) {
  std::vector<char> chunk(kChunk, 'x');
  const auto start = Clock::now();
  {
    const File file(path, O_WRONLY | O_CREAT | O_TRUNC);
    for (int64_t left = bytes; left > 0;) {
      const ssize_t n =
          write(file.descriptor(), chunk.data(), std::min(kChunk, static_cast<std::size_t>(left)));
      if (n <= 0) throw std::runtime_error("cannot write " + path);
      left -= n;
    }
    fsync(file.descriptor());
  }
  const double seconds = since(start);
  fs::remove(path);
  return seconds;
}

void forget(const std::string& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const File file(entry.path(), O_RDONLY);
    posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

double plain_read_s(const std::string& folder) {
  std::vector<char> chunk(kChunk);
  const auto start = Clock::now();
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const File file(entry.path(), O_RDONLY);
    while (read(file.descriptor(), chunk.data(), chunk.size()) > 0) {
    }
  }
  return since(start);
}

double load_s(const JobSpec& job, const Plan& plan, const std::string& directory) {
  const TokenData data = random_tokens(job);
  const int ranks = static_cast<int>(plan.pipelines[0].stages[0].shape.tp);
  ThreadHub hub(ranks);
  std::vector<double> seconds(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      const auto factory = hub.factory(rank);
      RankTrainer trainer(job, plan, rank, *factory, data);
      const auto start = Clock::now();
      trainer.load(directory);
      seconds[static_cast<std::size_t>(rank)] = since(start);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return *std::max_element(seconds.begin(), seconds.end());
}

void row(const std::string& what, double ours, double other, double ratio, const std::string& wanted) {
  fmt::print("{},{:.4f},{:.4f},{:.4f},{}\n", what, ours, other, ratio, wanted);
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  std::string job_file, directory;
  int threads = 2, interval = 50, rounds = 3;
  bool only_loading = false;
  CLI::App app{"Measures what checkpoints cost", "bench_checkpoint"};
  app.add_option("job", job_file, "job YAML")->required();
  app.add_option("--directory", directory, "where to write; on the disk that is meant")->required();
  app.add_option("--threads", threads)->check(CLI::PositiveNumber);
  app.add_option("--interval", interval, "steps between checkpoints")->check(CLI::PositiveNumber);
  app.add_option("--rounds", rounds)->check(CLI::PositiveNumber);
  app.add_flag("--only-loading", only_loading, "of what an earlier run has left in the directory");
  return cli::run_program(app, argc, argv, [&]() -> int {
    const JobSpec job = load_job_spec(job_file);
    at::set_num_threads(threads);
    fmt::print("what,ours_s,other_s,ratio,wanted\n");
    int64_t bytes = 0;
    if (!only_loading) {
      const TokenData data = random_tokens(job);
      ThreadHub hub(1);
      const auto factory = hub.factory(0);
      RankTrainer trainer(job, even_plan(job, {}), 0, *factory, data);
      const auto stand_still = [&] {
        trainer.save(directory, 1);
        const SaveResult result = trainer.saves(/*wait=*/true).at(0);
        if (!result.error.empty()) throw std::runtime_error(result.error);
        return result;
      };
      trainer.step();
      bytes = stand_still().saved.bytes;
      for (int round = 0; round < rounds; ++round) {
        std::vector<double> steps_s;
        for (int i = 0; i < 3; ++i) steps_s.push_back(trainer.step().step_s);
        std::sort(steps_s.begin(), steps_s.end());
        const double usual_s = steps_s[1];
        const auto start = Clock::now();
        trainer.save(directory, 1);
        int steps = 0;
        for (; trainer.saves().empty(); ++steps) trainer.step();
        const double extra_s = since(start) - steps * usual_s;
        row(fmt::format("training while a checkpoint is written: {} steps", steps), since(start),
            steps * usual_s, 1 + extra_s / (interval * usual_s),
            fmt::format("<= 1.05 over {} steps", interval));
        const SaveResult result = stand_still();
        const double plain_s = plain_write_s(directory + "/plain", bytes);
        row(fmt::format("writing {:.0f} MB", 1e-6 * static_cast<double>(bytes)), result.written_s, plain_s,
            plain_s / result.written_s, ">= 0.8");
      }
    }
    const std::string newest = list_checkpoints(directory).at(0);
    for (int round = 0; round < rounds; ++round) {
      forget(newest);
      const double read_s = plain_read_s(newest);
      forget(newest);
      const double loaded_s = load_s(job, even_plan(job, {.tp = 2}), directory);
      row("loading by two TP ranks", loaded_s, read_s, read_s / loaded_s, ">= 0.8");
    }
    return kDone;
  });
}

}  // namespace
}  // namespace sailor::bench

int main(int argc, char** argv) {
  sailor::keep_freed_memory();
  sailor::use_tensor_cache();
  return sailor::bench::run(argc, argv);
}
