// `sailor checkpoint ls|verify|export|prune`: looks after the checkpoints of a job, without any rank.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>

#include "planner/cli/program.h"
#include "planner/cli/progress_line.h"
#include "planner/spec/error.h"
#include "planner/spec/lora_parameters.h"
#include "planner/spec/model_family.h"
#include "trainer/checkpoint/adapter_directory.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/directory_lock.h"
#include "trainer/checkpoint/export_model.h"
#include "trainer/checkpoint/stored_rows.h"
#include "trainer/checkpoint/trained_model.h"
#include "trainer/checkpoint/training_state.h"
#include "trainer/model/element_types.h"

namespace {

namespace fs = std::filesystem;
using namespace sailor;

std::string in_words(const CheckpointManifest& manifest) {
  const ModelSpec& m = manifest.model;
  return fmt::format("{} {}x{}{}, {}, {}, {} file{}, written by {}", m.family, m.layers, m.hidden,
                     manifest.lora ? fmt::format(", LoRA r {}", manifest.lora->r) : "",
                     to_string(manifest.precision), manifest.optimizer, manifest.files.size(),
                     manifest.files.size() == 1 ? "" : "s", manifest.plan);
}

std::string megabytes(const CheckpointManifest& manifest) {
  return fmt::format("{:.1f} MB", 1e-6 * static_cast<double>(manifest.bytes()));
}

std::string name_of(const std::string& path) {
  return fs::path(path).filename().string();
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

struct ExportOptions {
  std::string source, directory;
  bool merge = false, ema = false;
  std::string base;  // of adapters; empty = the checkpoint's own
  bool quiet = false;
};

bool is_average(const CheckpointTensor& tensor) {
  return tensor.name.ends_with(std::string("/") + kAverageState);
}

int export_one(const ExportOptions& options) {
  const std::unique_ptr<CheckpointReader> opened = open_newest(
      options.source, [](const std::string& skipped) { std::cerr << "sailor: " << skipped << '\n'; });
  CheckpointReader& reader = *opened;
  const CheckpointManifest& m = reader.manifest();
  if (!m.lora && options.merge) throw InputError({reader.path(), 0}, "has no adapters: leave out --merge");
  if (options.ema && std::none_of(m.tensors.begin(), m.tensors.end(), is_average))
    throw InputError({reader.path(), 0}, "has no averages: the job had no training.ema; leave out --ema");
  const bool adapters = m.lora && !options.merge;
  {
    cli::ProgressLine line("export", options.quiet, {"M parameters", 1e6});
    double so_far = 0, total = 0;
    for (const ParameterSpec& parameter : adapters ? trained_parameters(m.model, m.lora, m.model.vocabulary)
                                                   : list_parameters(m.model, m.model.vocabulary))
      total += static_cast<double>(parameter.elements());
    const auto done = [&](const ParameterSpec& parameter) {
      line.at(so_far += static_cast<double>(parameter.elements()), total);
    };
    const auto whole = [&](const ParameterSpec& parameter) {
      at::Tensor value = read_whole(reader, parameter, options.ema);
      done(parameter);
      return value;
    };
    if (adapters) {
      export_adapters(options.directory, m.model, *m.lora,
                      stored_scalar_type(kind_of(m.precision).state_type, reader.path()), whole);
    } else if (options.merge) {
      const TrainedModel merged(reader, options.base, options.ema);
      export_model(options.directory, merged.model(), scalar_type(m.precision),
                   [&](const ParameterSpec& weight) {
                     done(weight);
                     return merged.weight(weight);
                   });
    } else {
      export_model(options.directory, m.model, scalar_type(m.precision), whole);
    }
  }
  std::cout << fmt::format("{} -> {}: {}{} after {} steps, {}\n", reader.path(), options.directory,
                           adapters        ? fmt::format("adapters of {}", m.model.from)
                           : options.merge ? m.model.family + " with merged adapters"
                                           : m.model.family,
                           options.ema ? ", averages" : "", m.step, to_string(m.precision));
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
  std::string directory;
  ExportOptions to_export;
  int keep = 1;
  bool quiet = false;
  CLI::App app{"Lists, checks, exports and removes the checkpoints of a job", "sailor checkpoint"};
  app.require_subcommand(1);
  CLI::App* ls = app.add_subcommand("ls", "list checkpoints, newest first, and whether each is complete");
  CLI::App* check = app.add_subcommand("verify", "read every byte and compare checksums");
  CLI::App* to_model =
      app.add_subcommand("export",
                         "write the newest complete checkpoint as a Hugging Face model directory, or its "
                         "adapters as one of PEFT");
  for (CLI::App* command : {ls, check, to_model})
    command->add_option("DIR", directory, "checkpoint.directory of a job, or one of its step-N directories")
        ->required();
  to_model->add_option("-o,--directory", to_export.directory, "output directory; created if missing")
      ->required();
  to_model->add_flag("--ema", to_export.ema, "the moving averages of the parameters (training.ema)");
  CLI::Option* merge = to_model->add_flag("--merge", to_export.merge,
                                          "of adapters: write the base model with them merged into it");
  to_model
      ->add_option("--base", to_export.base,
                   "directory of the base model, if it is no longer where training found it")
      ->needs(merge);
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
    to_export.source = directory;
    to_export.quiet = quiet;
    return export_one(to_export);
  });
}
