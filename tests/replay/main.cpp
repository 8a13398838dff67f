// Trains once more, without faults, what an elastic job trained while its processes were killed: the plan of
// every generation, from events.jsonl, for the steps that were trained under it, with the ranks as threads of
// this process and a checkpoint between two plans. Sums are in rank order on every plane, so each step must
// have the loss of metrics.jsonl to the last bit: anything that a change of plan lost, doubled or mixed up
// shows, however small it is, at the usual learning rates, where a run without the changes would drift apart.
//
// The job must compute on processors, and its thread count be 1, which is what ranks use. One CSV row for the
// segments that differ, and a summary, on stdout. Exit code 1 if a step differs or is missing.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "planner/history/json_lines.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/rank_layout.h"
#include "planner/process/scratch_directory.h"
#include "planner/spec/error.h"
#include "planner/spec/job_spec.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor::replay {
namespace {

// Steps [first, end) under a plan; the first step is 0.
struct Segment {
  Plan plan;
  int64_t first = 0, end = 0;
};

// The losses of a run by step (0 is the first).
std::map<int64_t, double> losses_of(const std::string& run) {
  std::map<int64_t, double> losses;
  for (const Json& line : json_lines(run + "/metrics.jsonl"))
    losses[static_cast<int64_t>(number_in(line, "step").value()) - 1] = number_in(line, "loss").value();
  return losses;
}

// What the run's final state came from: a generation that began with an earlier state replaces what the
// generations before it trained from there on.
std::vector<Segment> segments_of(const std::string& run, int64_t steps) {
  const std::string file = run + "/events.jsonl";
  std::vector<Segment> segments;
  std::optional<Plan> plan;
  for (const Json& event : json_lines(file)) {
    const std::string name = word_in(event, "event");
    if (name == "generation") plan = parse_plan(event.at("document").dump(), file);
    if (name != "running") continue;
    if (!plan) throw InputError(file + ": a generation runs, but it has no plan");
    const auto first = static_cast<int64_t>(number_in(event, "steps_done").value());
    for (Segment& segment : segments) segment.end = std::min(segment.end, first);
    std::erase_if(segments, [](const Segment& segment) { return segment.first >= segment.end; });
    if (first < steps) segments.push_back({*plan, first, steps});
  }
  return segments;
}

// Trains a segment from the checkpoint in `from` (the initial values if there is none) and writes one to
// `to`. Returns the losses of its steps.
std::vector<double> train(const JobSpec& job, const TokenData& data, const Segment& segment,
                          const std::string& from, const std::string& to) {
  std::vector<double> losses;
  TestJob ranks("thread", num_ranks(segment.plan), {std::chrono::minutes(10)});
  ranks.run([&](CommFactory& factory) {
    RankTrainer trainer(job, segment.plan, factory.rank(), factory, data);
    if (!from.empty()) trainer.load(from);
    if (trainer.next_step() != segment.first)
      throw std::runtime_error(
          fmt::format("the checkpoint is of step {}, not {}", trainer.next_step(), segment.first));
    while (trainer.next_step() < segment.end) {
      const StepResult result = trainer.step();
      if (factory.rank() == 0) losses.push_back(result.loss);
    }
    trainer.save(to, 1);
    for (const SaveResult& result : trainer.saves(true))
      if (!result.error.empty()) throw std::runtime_error(result.error);
  });
  return losses;
}

// Prints what differs. Returns whether nothing does.
bool replay(const JobSpec& job, const std::string& run) {
  const std::map<int64_t, double> losses = losses_of(run);
  if (losses.empty()) throw InputError(run + "/metrics.jsonl: has no steps");
  const int64_t steps = losses.rbegin()->first + 1;
  const std::vector<Segment> segments = segments_of(run, steps);
  if (segments.empty() || segments.front().first != 0)
    throw InputError(run + "/events.jsonl: does not begin with step 1");
  const TokenData data = TokenData::open(job);

  std::cout << "first_step,steps,ranks,different,largest_relative_difference\n";
  int64_t different = 0, missing = 0;
  double largest = 0;
  std::unique_ptr<ScratchDirectory> last;
  for (const Segment& segment : segments) {
    auto next = std::make_unique<ScratchDirectory>();
    const std::vector<double> again = train(job, data, segment, last ? last->path() : "", next->path());
    last = std::move(next);
    int64_t differs = 0;
    double most = 0;
    for (int64_t step = segment.first; step < segment.end; ++step) {
      const auto found = losses.find(step);
      if (found == losses.end()) {
        ++missing;
        continue;
      }
      const double expected = again[static_cast<std::size_t>(step - segment.first)];
      if (found->second == expected) continue;
      ++differs;
      most = std::max(most, std::abs(found->second - expected) / std::abs(expected));
    }
    if (differs > 0)
      std::cout << fmt::format("{},{},{},{},{:.1e}\n", segment.first + 1, segment.end - segment.first,
                               num_ranks(segment.plan), differs, most)
                << std::flush;
    different += differs;
    largest = std::max(largest, most);
  }
  std::cout << fmt::format("# {} steps under {} plans: {} differ, by up to {:.1e}; {} missing\n", steps,
                           segments.size(), different, largest, missing);
  return different == 0 && missing == 0;
}

}  // namespace
}  // namespace sailor::replay

int main(int argc, char** argv) {
  CLI::App app{
      "Trains again without faults what an elastic job trained, and compares the losses bit by bit."};
  std::string job, run;
  app.add_option("JOB", job, "the job spec, where the job was submitted")->required();
  app.add_option("RUN", run, "the run directory")->required();
  CLI11_PARSE(app, argc, argv);
  try {
    at::set_num_threads(1);
    return sailor::replay::replay(sailor::load_job_spec(job), run) ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "replay_run: " << e.what() << "\n";
    return 2;
  }
}
