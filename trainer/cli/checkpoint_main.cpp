// `sailor checkpoint ls|verify|export|prune`: looks after the checkpoints of a job, without any rank.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <limits>

#include "planner/cli/program.h"
#include "planner/cli/progress_line.h"
#include "planner/spec/error.h"
#include "planner/spec/model_family.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/directory_lock.h"
#include "trainer/checkpoint/export_model.h"
#include "trainer/checkpoint/training_state.h"
#include "trainer/model/element_types.h"

namespace {

namespace fs = std::filesystem;
using namespace sailor;

std::string in_words(const CheckpointManifest& manifest) {
  const ModelSpec& m = manifest.model;
  return fmt::format("{} {}x{}, {}, {}, {} file{}, written by {}", m.family, m.layers, m.hidden,
                     to_string(manifest.precision), manifest.optimizer, manifest.files.size(),
                     manifest.files.size() == 1 ? "" : "s", manifest.plan);
}

std::string megabytes(const CheckpointManifest& manifest) {
  return fmt::format("{:.1f} MB", 1e-6 * static_cast<double>(manifest.bytes()));
}

std::string name_of(const std::string& path) {
  return fs::path(path).filename().string();
}

// The checkpoints that a path means: it is one, or a directory of some. Newest first, at least one.
std::vector<std::string> checkpoints_of(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::error_code error;
  if (!fs::is_directory(path, error)) throw InputError({path, 0}, "is not a directory");
  if (fs::exists(path + "/manifest.json", error) || fs::exists(path + "/DONE", error)) return {path};
  std::vector<std::string> found = list_checkpoints(path);
  if (found.empty()) throw InputError({path, 0}, "has no checkpoints (step-N)");
  return found;
}

int list(const std::string& directory) {
  for (const std::string& path : checkpoints_of(directory)) {
    try {
      const CheckpointManifest manifest = open_checkpoint(path);
      std::cout << fmt::format("{:<14} complete {:>12}  {}\n", name_of(path), megabytes(manifest),
                               in_words(manifest));
    } catch (const CheckpointDamaged& damage) {
      std::cout << fmt::format("{:<14} damaged  {:>12}  {}\n", name_of(path), "-", damage.what());
    }
  }
  return kDone;
}

int verify(const std::string& directory, bool quiet) {
  int damaged = 0;
  for (const std::string& path : checkpoints_of(directory)) {
    try {
      CheckpointReader reader(path, open_checkpoint(path));
      {
        cli::ProgressLine line("verify " + name_of(path), quiet);
        const auto total = static_cast<double>(reader.manifest().bytes());
        reader.verify([&](int64_t done) { line.at(static_cast<double>(done), total); });
      }
      std::cout << fmt::format("{:<14} complete {:>12}\n", name_of(path), megabytes(reader.manifest()))
                << std::flush;
    } catch (const CheckpointDamaged& damage) {
      ++damaged;
      std::cout << fmt::format("{:<14} damaged  {:>12}  {}\n", name_of(path), "-", damage.what())
                << std::flush;
    }
  }
  if (damaged > 0) std::cerr << fmt::format("sailor: damaged checkpoints: {}\n", damaged);
  return damaged > 0 ? kFailed : kDone;
}

int export_one(const std::string& source, const std::string& directory, bool quiet) {
  std::string path;
  CheckpointManifest manifest;
  for (const std::string& candidate : checkpoints_of(source)) {
    try {
      manifest = open_checkpoint(candidate);
      path = candidate;
      break;
    } catch (const CheckpointDamaged& damage) {
      std::cerr << "sailor: " << skipped_line(candidate, damage.what()) << '\n';
    }
  }
  if (path.empty()) throw InputError({source, 0}, "has no complete checkpoint");
  CheckpointReader reader(path, std::move(manifest));
  const CheckpointManifest& m = reader.manifest();
  {
    cli::ProgressLine line("export", quiet, {"M parameters", 1e6});
    const std::vector<ParameterSpec> parameters = list_parameters(m.model, m.model.vocabulary);
    const auto count = [](const ParameterSpec& parameter) {
      return static_cast<double>(parameter.rows * std::max<int64_t>(1, parameter.columns));
    };
    double done = 0, total = 0;
    for (const ParameterSpec& parameter : parameters) total += count(parameter);
    export_model(directory, m.model, scalar_type(m.precision), [&](const ParameterSpec& parameter) {
      at::Tensor whole = read_whole(reader, parameter);
      line.at(done += count(parameter), total);
      return whole;
    });
  }
  std::cout << fmt::format("{} -> {}: {} after {} steps, {}\n", path, directory, m.model.family, m.step,
                           to_string(m.precision));
  return kDone;
}

int prune(const std::string& directory, int keep) {
  const DirectoryLock lock(directory);
  for (const std::string& path : prune_checkpoints(directory, std::numeric_limits<int64_t>::max(), keep))
    std::cout << fmt::format("{:<14} removed\n", name_of(path));
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  std::string directory, target;
  int keep = 1;
  bool quiet = false;
  CLI::App app{"Lists, checks, exports and removes the checkpoints of a job", "sailor checkpoint"};
  app.require_subcommand(1);
  CLI::App* ls = app.add_subcommand("ls", "list checkpoints, newest first, and whether each is complete");
  CLI::App* check = app.add_subcommand("verify", "read every byte and compare checksums");
  CLI::App* to_model =
      app.add_subcommand("export", "write the newest complete checkpoint as a Hugging Face model directory");
  for (CLI::App* command : {ls, check, to_model})
    command->add_option("DIR", directory, "checkpoint.directory of a job, or one of its step-N directories")
        ->required();
  to_model->add_option("-o,--directory", target, "output directory; created if missing")->required();
  for (CLI::App* command : {check, to_model}) command->add_flag("-q,--quiet", quiet, "no progress on stderr");
  CLI::App* remove =
      app.add_subcommand("prune", "remove all but the newest complete checkpoints; no job may write there");
  remove->add_option("DIR", directory, "checkpoint.directory of a job")
      ->required()
      ->check(CLI::ExistingDirectory);
  remove->add_option("--keep", keep, "number of checkpoints to keep")
      ->required()
      ->check(cli::within(1, 1'000'000));
  return cli::run_program(app, argc, argv, [&] {
    if (*ls) return list(directory);
    if (*check) return verify(directory, quiet);
    if (*remove) return prune(directory, keep);
    return export_one(directory, target, quiet);
  });
}
