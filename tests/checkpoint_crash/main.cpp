// Kills trainings with SIGKILL at random moments while they save, and loads what is left: it must be the
// newest complete checkpoint, and the state must be that of a training that nobody killed, bit for bit. Then
// damages every file of a checkpoint in three ways, one at a time: each must be noticed, and the one before
// be loaded. One CSV row per kill on stdout; exit 1 when any is wrong.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <thread>

#include "planner/plan/rank_layout.h"
#include "planner/process/scratch_directory.h"
#include "planner/spec/error.h"
#include "tests/checkpoint_crash/training.h"
#include "tests/checkpoint_crash/victims.h"

namespace sailor::checkpoint_crash {
namespace {

namespace fs = std::filesystem;

constexpr int kKillsPerTraining = 10;
constexpr double kLongest_s = 0.6;  // that a training may live

// The newest folder that has got its name and its DONE, without the product's code; -1 = none.
int64_t newest_complete(const std::string& directory) {
  int64_t newest = -1;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name.rfind("step-", 0) != 0 || name.find('.') != std::string::npos) continue;
    if (fs::exists(entry.path() / "DONE")) newest = std::max<int64_t>(newest, std::stoll(name.substr(5)));
  }
  return newest;
}

bool bit_exact(const Loaded& loaded, const Fingerprints& expected) {
  return loaded.fingerprints == expected[static_cast<std::size_t>(std::max<int64_t>(loaded.step, 0))];
}

// Returns whether all was well. `kill` counts over all trainings.
bool kill_trainings(uint64_t seed, int first_kill, int kills, const std::string& directory) {
  std::mt19937_64 random(seed);
  const Training training = draw_training(seed);
  const Fingerprints expected = uninterrupted(training);
  const int ranks = num_ranks(training.plan);
  bool well = true;
  fs::create_directories(directory);
  for (int kill = first_kill; kill < first_kill + kills; ++kill) {
    if (newest_complete(directory) == training.job.training.steps) {  // it came to its end
      fs::remove_all(directory);
      fs::create_directories(directory);
    }
    const double at_s = std::uniform_real_distribution<double>(0, kLongest_s)(random);
    const int alone = static_cast<int>(random() % static_cast<uint64_t>(2 * ranks));
    Victims victims(seed, ranks, directory);
    std::this_thread::sleep_for(std::chrono::duration<double>(at_s));
    if (alone < ranks) {
      victims.kill_one(alone);
    } else {
      victims.kill_all();
    }
    const int64_t said = victims.last_saved(), newest = newest_complete(directory);
    const Loaded loaded = load(training, directory);
    const bool exact = bit_exact(loaded, expected);
    std::cout << fmt::format("{},{:.4f},{},{},{}\n", kill, at_s, loaded.step, newest, exact ? 1 : 0)
              << std::flush;
    if (loaded.step == newest && loaded.step >= said && exact) continue;
    well = false;
    std::cerr << fmt::format("kill {}: loaded {}, complete {}, said to be saved {}, {}\n", kill, loaded.step,
                             newest, said, exact ? "the same state" : "another state");
  }
  return well;
}

using Damage = void (*)(const fs::path& file, uint64_t at);

void flip_a_bit(const fs::path& file, uint64_t at) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  const auto byte = static_cast<std::streamoff>(at % fs::file_size(file));
  stream.seekg(byte);
  const auto changed = static_cast<char>(stream.get() ^ (1 << at / 7 % 8));
  stream.seekp(byte);
  stream.put(changed);
}

void cut(const fs::path& file, uint64_t at) {
  fs::resize_file(file, at % fs::file_size(file));
}

void remove(const fs::path& file, uint64_t) {
  fs::remove(file);
}

// Of a training's second checkpoint; its first one is loaded then.
bool damage_every_file(uint64_t seed, const std::string& directory) {
  std::mt19937_64 random(seed);
  const Training training = draw_training(seed);
  const Fingerprints expected = uninterrupted(training);
  const std::string whole = directory + "/whole", damaged = directory + "/damaged";
  fs::create_directories(whole);
  {
    Victims victims(seed, num_ranks(training.plan), whole);
    if (victims.last_saved() != training.job.training.steps)  // waits for the end of rank 0
      throw std::runtime_error("a training that nobody killed did not come to its end");
  }
  const int64_t newest = newest_complete(whole);
  int ways = 0, unnoticed = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(fmt::format("{}/step-{}", whole, newest))) {
    for (const Damage damage : {flip_a_bit, cut, remove}) {
      fs::remove_all(damaged);
      fs::copy(whole, damaged, fs::copy_options::recursive);
      damage(fmt::format("{}/step-{}", damaged, newest) / entry.path().filename(), random());
      const Loaded loaded = load(training, damaged);
      ++ways;
      if (loaded.step == newest - 1 && loaded.skipped.size() == 1 && bit_exact(loaded, expected)) continue;
      ++unnoticed;
      std::cerr << fmt::format("seed {}, {}: damage {} was not noticed, step {} was loaded\n", seed,
                               entry.path().filename().string(), ways, loaded.step);
    }
  }
  std::cout << fmt::format("# {} damages of single files, {} unnoticed\n", ways, unnoticed) << std::flush;
  return unnoticed == 0 && ways >= 9;
}

int run(uint64_t seed, int count) {
  at::set_num_threads(1);
  const ScratchDirectory scratch;
  std::cout << fmt::format("# seed {}\nkill,at_s,loaded_step,newest_complete,bit_exact\n", seed)
            << std::flush;
  bool well = true;
  for (int kill = 0; kill < count; kill += kKillsPerTraining) {
    const uint64_t of_training = seed * 1000 + static_cast<uint64_t>(kill);
    well = kill_trainings(of_training, kill, std::min(kKillsPerTraining, count - kill),
                          fmt::format("{}/{}", scratch.path(), kill)) &&
           well;
  }
  well = damage_every_file(seed, scratch.path() + "/damage") && well;
  return well ? 0 : 1;
}

}  // namespace
}  // namespace sailor::checkpoint_crash

int main(int argc, char** argv) {
  using namespace sailor::checkpoint_crash;
  uint64_t seed = 1;
  int count = 200, rank = -1;
  std::string directory;
  CLI::App app{"Kills trainings while they save, and loads what is left"};
  app.add_option("--seed", seed, "what everything is drawn from");
  app.add_option("--count", count, "how many are killed")->check(CLI::PositiveNumber);
  app.add_option("--as-rank", rank)->group("");  // how the program starts itself
  app.add_option("--directory", directory)->group("");
  CLI11_PARSE(app, argc, argv);
  try {
    return rank >= 0 ? run_victim(seed, rank, directory) : run(seed, count);
  } catch (const std::exception& error) {
    if (rank < 0) std::cerr << "sailor: checkpoint_crash: " << error.what() << '\n';
    return rank < 0 ? 2 : 1;
  }
}
