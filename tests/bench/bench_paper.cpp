// The paper's tables and figures that need no GPU, from runs of this command: ours beside what was published.
//
//   bench_paper --out DIR [--reference DIR] [--most-gpus N] [--cell-limit S] [--reconfiguration FILE]
//
// Writes DIR/index.html (self-contained), paper.md, a .csv per table and a .svg per picture. Exit 0 also when
// the data are not there ("skipped: no data"), and where others are better: the page says so.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "planner/spec/error.h"
#include "tests/bench/evaluation/sections.h"

namespace sailor::bench {
namespace {

int run(const StudyOptions& options, const std::string& out) {
  if (options.reference.empty() || !std::filesystem::exists(options.reference)) {
    fmt::print(stderr, "skipped: no data (--reference or SAILOR_REFERENCE: the reference data pack)\n");
    return kDone;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  Study study(options);
  std::vector<Section> sections;
  for (const auto& make :
       {figure_1, simulator_accuracy, homogeneous, mixed_types, mixed_types_small, four_zones, five_zones,
        limits_of_users, search_times, scaling, reconfiguration, takeaways}) {
    sections.push_back(make(study));
    fmt::print(stderr, "{:6.1f} s  {}\n", seconds(), sections.back().title);
  }
  sections.insert(sections.begin(), summary(study, seconds()));
  write_sections("The paper's evaluation", sections, out);
  fmt::print("{}/index.html\n", out);
  return kDone;
}

}  // namespace
}  // namespace sailor::bench

int main(int argc, char** argv) {
  using namespace sailor;
  bench::StudyOptions options;
  options.clusters = SAILOR_SOURCE_DIR "/tests/bench/evaluation/clusters.csv";
  options.assumptions = SAILOR_SOURCE_DIR "/etc";
  if (const char* reference = std::getenv("SAILOR_REFERENCE")) options.reference = reference;
  std::string out;
  CLI::App app{"The paper's tables and figures that need no GPU, ours beside the published ones"};
  app.add_option("--out", out, "directory for the page, its tables and pictures")->required();
  app.add_option("--reference", options.reference, "the reference data pack (default: SAILOR_REFERENCE)");
  app.add_option("--most-gpus", options.most_gpus, "leave larger scenarios out")->check(CLI::PositiveNumber);
  app.add_option("--time-limit", options.time_limit_s, "seconds per search")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--cell-limit", options.cell_limit_s, "seconds per search without prunings")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--reconfiguration", options.reconfiguration,
                 "measured reconfigurations: the chaos.csv that tests/chaos.sh --out writes")
      ->check(CLI::ExistingFile);
  CLI11_PARSE(app, argc, argv);
  try {
    return bench::run(options, out);
  } catch (const InputError& error) {
    fmt::print(stderr, "bench_paper: {}\n", error.what());
    return kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_paper: {}\n", error.what());
    return kFailed;
  }
}
