// Replaces a complete checkpoint by one of the same step, and the planning inputs of a run by others, and
// cuts the power after every change: one of the two is there, whole. With --no-exchange the file system
// cannot exchange two directories: then a cut while they are replaced may leave none, which shows that the
// check notices it.
#include <fmt/format.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "planner/inputs/planning_record.h"
#include "planner/process/scratch_directory.h"
#include "planner/process/subprocess.h"
#include "planner/spec/text_file.h"
#include "tests/power_cut/disk_model.h"
#include "trainer/checkpoint/checkpoint_directory.h"

namespace sailor::power_cut {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kStep = 7;
const std::vector<std::string> kVersions = {"old", "new"};

void write_checkpoint(const std::string& saved, const std::string& version) {
  const std::string text = version + "\n", path = begin_checkpoint(saved, kStep);
  write_file_atomically(path + "/notes", text);
  write_file_atomically(path + "/rank-00000.safetensors", text);
  CheckpointManifest manifest;
  manifest.step = kStep;
  manifest.optimizer = "adamw";
  manifest.plan = version;
  commit_checkpoint(saved, manifest);
}

// In a process of its own, whose changes are recorded.
void write_versions(const std::string& directory, const std::string& recording) {
  create_directories_on_disk(directory + "/run");
  for (const std::string& version : kVersions) {
    write_checkpoint(directory + "/saved", version);
    write_planning(directory + "/run", {{"profiles/a.json", version}, {"sailor.yaml", version}});
    record_output(recording, version);
  }
}

// The versions of checkpoint and planning inputs; empty: there is none. Throws for a part of one, or a
// mixture.
std::string checkpoint_version(const std::string& saved) {
  if (list_checkpoints(saved).empty()) return "";
  const std::string path = list_checkpoints(saved).front(), version = open_checkpoint(path).plan;
  for (const char* file : {"/notes", "/rank-00000.safetensors"})
    if (read_text_file(path + file) != version + "\n") throw std::runtime_error(path + " is a mixture");
  return version;
}

std::string planning_version(const std::string& run) {
  if (!fs::exists(run + "/planning")) return "";
  const std::string path = run + "/planning", version = read_text_file(path + "/sailor.yaml");
  if (read_text_file(path + "/profiles/a.json") != version) throw std::runtime_error(path + " is a mixture");
  return version;
}

struct Tally {
  int cuts = 0, wrong = 0, none = 0;  // none: neither version, after the first was written
};

// `written`: how many versions were.
void check_cut(const std::string& cut, std::size_t written, Tally& tally) {
  ++tally.cuts;
  for (const auto& [what, version_in] :
       {std::pair(cut + "/saved", &checkpoint_version), {cut + "/run", &planning_version}}) {
    try {
      const std::string version = version_in(what);
      if (version.empty() && written == 1) ++tally.none;
      if ((version.empty() && written == kVersions.size()) ||
          (!version.empty() && written > 0 && version != kVersions[written - 1] &&
           version != kVersions.back()))
        throw std::runtime_error("is lost");
    } catch (const std::exception& error) {
      ++tally.wrong;
      std::cerr << fmt::format("{} versions written, {}: {}\n", written, what, error.what());
    }
  }
}

int run(uint64_t seed, int states, bool exchange) {
  std::mt19937_64 random(seed);
  const ScratchDirectory scratch;
  const std::string recording = scratch.path() + "/recording", work = scratch.path() + "/work",
                    cut = scratch.path() + "/cut";
  fs::create_directory(work);
  std::ofstream(recording).close();
  std::map<std::string, std::string> environment = {
      {"POWER_CUT_DIRECTORY", work}, {"POWER_CUT_RECORDING", recording}, {"LD_PRELOAD", POWER_CUT_RECORDER}};
  if (!exchange) environment["POWER_CUT_NO_EXCHANGE"] = "1";
  int status = 0;
  const pid_t child = spawn({fs::read_symlink("/proc/self/exe"), "--write", work, "--recording", recording},
                            {.environment = environment});
  if (waitpid(child, &status, 0) != child || status != 0) throw std::runtime_error("the writer failed");
  DiskModel model(work, Ignored::nothing);
  Tally tally;
  std::size_t written = 0;
  for (const Record& record : read_recording(recording)) {
    model.apply(record);
    if (record.operation == 'o') ++written;
    for (int i = 0; i < states; ++i) {
      fs::remove_all(cut);
      model.write_state(random, cut);
      check_cut(cut, written, tally);
    }
  }
  const std::string left =
      fmt::format("{} {}", checkpoint_version(work + "/saved"), planning_version(work + "/run"));
  if (left != "new new" || written != kVersions.size()) throw std::runtime_error("what is left: " + left);
  for (const auto& entry : fs::recursive_directory_iterator(work)) {
    if (entry.path().string().find(".tmp") != std::string::npos ||
        entry.path().filename() == "planning.new" || entry.path().filename() == "planning.old")
      throw std::runtime_error("left over: " + entry.path().string());
  }
  std::cout << fmt::format("{} cuts, {} wrong, {} without either version\n", tally.cuts, tally.wrong,
                           tally.none);
  return tally.wrong == 0 && (tally.none == 0) == exchange ? 0 : 1;
}

}  // namespace
}  // namespace sailor::power_cut

int main(int argc, char** argv) {
  CLI::App app{"Cuts the power while a checkpoint and planning inputs are replaced"};
  uint64_t seed = 1;
  int states = 20;
  bool no_exchange = false;
  std::string write, recording;
  app.add_option("--seed", seed, "what everything is drawn from");
  app.add_option("--states", states, "states of the disk after each change")->check(CLI::PositiveNumber);
  app.add_flag("--no-exchange", no_exchange, "the file system cannot exchange directories");
  app.add_option("--write", write)->group("");  // of the recorded process
  app.add_option("--recording", recording)->group("");
  CLI11_PARSE(app, argc, argv);
  try {
    if (write.empty()) return sailor::power_cut::run(seed, states, !no_exchange);
    sailor::power_cut::write_versions(write, recording);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "sailor: power_cut_replace: " << error.what() << '\n';
    return 2;
  }
}
