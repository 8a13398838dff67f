// Records what a training of several ranks, which is stopped and continued, writes, and cuts the power after
// any of its changes: builds a state of the directory that the cut may leave (disk_model.h), and checks that
//
//   - a checkpoint loads that is not older than the newest one reported as written, and has the bytes that
//   the
//     training wrote;
//   - status and reports can be read, with the metrics of all steps before that checkpoint;
//   - a restart continues all files. Some states are trained to the end by real restarts, whose last
//   checkpoint
//     must have the same bytes as without a cut.
//
// One CSV row per cut on stdout; exit 1 when any is wrong. --ignore leaves out fsyncs from the model, to show
// that the checks notice a missing one: then the exit code is 0 if a cut was wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "planner/history/json_lines.h"
#include "planner/history/run_history.h"
#include "planner/process/scratch_directory.h"
#include "planner/spec/error.h"
#include "tests/power_cut/disk_model.h"
#include "tests/power_cut/training_run.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/directory_lock.h"
#include "trainer/record/event_log.h"
#include "trainer/record/metrics_writer.h"

namespace sailor::power_cut {
namespace {

namespace fs = std::filesystem;

struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void expect(bool right, const std::string& wrong) {
  if (!right) throw Wrong(wrong);
}

Files read_files(const std::string& directory) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const std::string path = fs::relative(entry.path(), directory);
    if (!entry.is_regular_file() || path.starts_with("run/logs") || path.starts_with("run/links")) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    files[path] = text.str();
  }
  return files;
}

Files checkpoint_in(const Files& files, int64_t step) {
  const std::string prefix = fmt::format("saved/step-{}/", step);
  Files of;
  for (const auto& [path, content] : files)
    if (path.starts_with(prefix)) of[path] = content;
  return of;
}

// What the training had done and said before a cut.
struct Progress {
  int64_t reported = 0;              // newest checkpoint that the user was told of
  bool trained = false;              // a step was shown
  std::string said;                  // its output
  std::map<int64_t, Files> written;  // checkpoints, as of the rename that completed them

  void follow(const Record& record, const DiskModel& model) {
    if (record.operation == 'r') {
      const std::string name = fs::path(record.other_path).filename();
      if (name.starts_with("step-") && name.find('.') == std::string::npos)
        written[std::stoll(name.substr(5))] = checkpoint_in(model.seen(), std::stoll(name.substr(5)));
    }
    if (record.operation != 'o') return;
    said += record.data;
    trained = trained || said.find("step 1/") != std::string::npos;
    for (int64_t step = 1; step <= kSteps; ++step)
      if (said.find(fmt::format("/step-{} written", step)) != std::string::npos)
        reported = std::max(reported, step);
  }
};

// The newest checkpoint that loads, as the trainer finds it; 0 = none.
int64_t load_newest(const std::string& saved, const Progress& progress, const Files& files) {
  for (const std::string& path : list_checkpoints(saved)) {
    try {
      CheckpointReader reader(path, open_checkpoint(path));
      reader.verify();
      const int64_t step = reader.manifest().step;
      expect(checkpoint_in(files, step) == progress.written.at(step), path + " has other bytes");
      return step;
    } catch (const CheckpointDamaged&) {
    }
  }
  return 0;
}

std::vector<int64_t> steps_in(const std::string& run) {
  std::vector<int64_t> steps;
  for (const StepMetrics& step : read_steps(run)) steps.push_back(step.step);
  return steps;
}

// Throws Wrong or what the product throws.
int64_t check_state(const std::string& directory, const Progress& progress) {
  const std::string saved = directory + "/saved", run = directory + "/run";
  const int64_t loaded = load_newest(saved, progress, read_files(directory));
  expect(loaded >= progress.reported, fmt::format("step {} loads", loaded));
  expect(!progress.trained || fs::exists(run + "/plan.json"), "no plan.json");
  if (fs::exists(run + "/plan.json")) read_run_history(run);
  const std::vector<int64_t> steps = steps_in(run);
  expect(std::ranges::is_sorted(steps) && std::set(steps.begin(), steps.end()).size() == steps.size(),
         "steps are listed twice");
  for (int64_t step = 1; step <= progress.reported; ++step)
    expect(std::ranges::count(steps, step) == 1, fmt::format("the metrics of step {} are lost", step));
  // A restart.
  const DirectoryLock lock(saved);
  begin_checkpoint(saved, loaded + 1);
  const RunDirectory out(run);
  const StepFacts facts;
  MetricsWriter(out, facts, "").write({.step = loaded + 1, .loss = 1.0});
  std::vector<int64_t> expected;
  for (const int64_t step : steps)
    if (step <= loaded) expected.push_back(step);
  expected.push_back(loaded + 1);
  expect(steps_in(run) == expected, "metrics do not continue");
  const std::size_t events = json_lines(run + "/events.jsonl").size();
  EventLog(out).write("restarted", nlohmann::ordered_json::object());
  // A cut before the end of a line leaves a whole event, which the next one completes.
  const std::vector<Json> continued = json_lines(run + "/events.jsonl");
  expect(continued.size() > events && word_in(continued.back(), "event") == "restarted",
         "the next event is lost");
  return loaded;
}

struct Options {
  uint64_t seed = 1;
  int count = 2000, restarts = 10;
  std::string ignore = "nothing";
};

int run(const Options& options) {
  std::mt19937_64 random(options.seed);
  const ScratchDirectory scratch;
  const std::string recording = scratch.path() + "/recording", work = scratch.path() + "/work",
                    cut = scratch.path() + "/cut";
  const TrainingRun training{scratch.path() + "/inputs",
                             fs::read_symlink("/proc/self/exe").parent_path() / "sailor-run"};
  for (const std::string& directory : {work, training.inputs}) fs::create_directory(directory);
  std::ofstream(recording).close();
  training.prepare();
  for (const int64_t steps : {kFirstSteps, kSteps})
    if (training.train(work, steps, recording) != kDone) throw std::runtime_error("the training failed");
  const std::vector<Record> records = read_recording(recording);
  const Files left = read_files(work);
  std::vector<std::size_t> cuts;
  for (int i = 0; i < options.count; ++i) cuts.push_back(random() % (records.size() + 1));
  std::ranges::sort(cuts);
  const Ignored ignored = options.ignore == "files"         ? Ignored::file_syncs
                          : options.ignore == "directories" ? Ignored::directory_syncs
                                                            : Ignored::nothing;
  DiskModel model(work, ignored);
  Progress progress;
  const auto syncs = std::ranges::count(records, 's', &Record::operation);
  std::cout << fmt::format("# seed {}, {} changes, {} fsyncs\ncut,changes,reported,loaded,restarted,right\n",
                           options.seed, records.size(), syncs);
  int wrong = 0;
  std::size_t done = 0;
  for (int i = 0; i < options.count; ++i) {
    for (; done < cuts[static_cast<std::size_t>(i)]; ++done) {
      model.apply(records[done]);
      progress.follow(records[done], model);
    }
    fs::remove_all(cut);
    model.write_state(random, cut);
    const bool restart = ignored == Ignored::nothing &&
                         i % std::max(1, options.count / std::max(1, options.restarts)) == 1 &&
                         options.restarts > 0;
    int64_t loaded = -1;
    std::string reason;
    try {
      if (restart) {
        expect(training.train(cut, kSteps, "") == kDone, "a restart failed");
        expect(load_newest(cut + "/saved",
                           {.reported = 0,
                            .trained = false,
                            .said = "",
                            .written = {{kSteps, checkpoint_in(left, kSteps)}}},
                           read_files(cut)) == kSteps,
               "not trained to the end");
      } else {
        loaded = check_state(cut, progress);
      }
    } catch (const std::exception& error) {
      reason = error.what();
      ++wrong;
      std::cerr << fmt::format("cut {} after {} changes, step {} reported: {}\n", i, done, progress.reported,
                               reason);
    }
    std::cout << fmt::format("{},{},{},{},{},{}\n", i, done, progress.reported, loaded, restart ? 1 : 0,
                             reason.empty() ? 1 : 0)
              << std::flush;
  }
  for (; done < records.size(); ++done) {
    model.apply(records[done]);
    progress.follow(records[done], model);
  }
  if (model.seen() != left || progress.reported != kSteps || syncs == 0)
    throw std::runtime_error("the recording lacks changes of the training");
  std::cout << fmt::format("# {} cuts, {} wrong\n", options.count, wrong);
  return (wrong == 0) == (ignored == Ignored::nothing) ? 0 : 1;
}

}  // namespace
}  // namespace sailor::power_cut

int main(int argc, char** argv) {
  sailor::power_cut::Options options;
  CLI::App app{"Cuts the power after any change of a training, and continues from what is left"};
  app.add_option("--seed", options.seed, "what everything is drawn from");
  app.add_option("--count", options.count, "number of cuts")->check(CLI::PositiveNumber);
  app.add_option("--restarts", options.restarts, "how many of them are trained to the end");
  app.add_option("--ignore", options.ignore, "fsyncs that the disk ignores; exit 0 if a cut is then wrong")
      ->check(CLI::IsMember({"nothing", "files", "directories"}));
  CLI11_PARSE(app, argc, argv);
  try {
    return sailor::power_cut::run(options);
  } catch (const std::exception& error) {
    std::cerr << "sailor: power_cut: " << error.what() << '\n';
    return 2;
  }
}
