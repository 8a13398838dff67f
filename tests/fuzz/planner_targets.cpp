#include "planner/inputs/load_inputs.h"
#include "planner/plan/measured_run.h"
#include "planner/plan/packed_plan.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/rank_layout.h"
#include "planner/plan/validate.h"
#include "planner/profile/profile_set.h"
#include "planner/replay/availability_trace.h"
#include "planner/report/candidate_table.h"
#include "planner/report/stage_table.h"
#include "planner/search/search.h"
#include "planner/simulator/assumptions.h"
#include "planner/simulator/native_model.h"
#include "planner/spec/catalog.h"
#include "planner/spec/framework_style.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/json_parts.h"
#include "planner/spec/site_config.h"
#include "planner/spec/snapshot.h"
#include "planner/spec/text_file.h"
#include "tests/fuzz/bundle.h"
// Targets of fuzz_planner: the files that are planned from, and planning.
#include "tests/fuzz/targets.h"

namespace sailor::fuzz {
namespace {

void snapshot(const std::string& input) {
  require_text(input, "snapshot.yaml");
  const Snapshot read = parse_snapshot(input, "snapshot.yaml");
  read.free_by_zone_and_type();
  const std::string written = to_yaml(read);
  if (to_yaml(parse_snapshot(written, "written.yaml")) != written)
    broken("a snapshot changes when it is written and read");
}

void layer_profile(const std::string& input) {
  require_text(input, "profile.json");
  const ProfileFile read = parse_profile_file(input, "profile.json");
  const LayerProfile profile = unroll(read, 3);
  unroll_sizes(read, 3);
  if (profile.microbatches().empty() || profile.shapes().empty())
    broken("a profile without a cell was accepted");
  const std::string written = to_json(read);
  if (to_json(parse_profile_file(written, "written.json")) != written)
    broken("a profile changes when it is written and read");
}

void network_profile(const std::string& input) {
  require_text(input, "network.json");
  const NetworkProfile read = parse_network_profile(input, "network.json");
  for (bool same_node : {false, true}) {
    const LinkCurve* curve = read.find({"quick", "east", 2}, {"steady", "west", 1}, same_node);
    if (curve == nullptr) continue;
    for (double bytes : {0.0, 1.0, 1e3, 1e6, 1e9, 1e15})
      if (!(curve->time_s(bytes, 4) >= 0)) broken("a message takes less than no time");
  }
}

// The layout of the reference data pack, with one model and two types.
void reference_profiles(const std::string& input) {
  static const Directory directory({"profiles/llm_info.json", "profiles/profiles_tmp.json",
                                    "profiles/M/A/profile.json", "profiles/M/B/profile.json",
                                    "network/multizone_bandwidths_het.json"});
  directory.fill(split_bundle(input));
  for (ReferenceTimes times : {ReferenceTimes::planner_copy, ReferenceTimes::simulator_copy})
    load_reference_profiles(directory.root(), "M", {"A", "B"}, times);
}

void json_parts(const std::string& input) {
  const auto all = [](const JsonPath&) { return JsonPart::members; };
  if (keep_json_parts(input, all) != input) broken("a text changes although all of it is kept");
  const auto some = [](const JsonPath& path) {
    return path.back().size() % 2 == 0 ? JsonPart::members : JsonPart::nothing;
  };
  const std::string kept = keep_json_parts(input, some);
  bool valid = false;
  try {
    require_text(input, "x.json");
    parse_json(input, "x.json");
    valid = true;
  } catch (const InputError&) {
  }
  if (valid) parse_json(kept, "kept.json");  // must not throw, but for text that was too deep or too long
}

void job_spec(const std::string& input) {
  require_text(input, "job.yaml");
  parse_job_spec(input, "job.yaml");
}

void trace(const std::string& input) {
  const AvailabilityTrace read = parse_trace(input, "trace.csv");
  if (read.changes.empty()) broken("a trace without a count");
  double before = -1;
  for (const AvailabilityTrace::Change& change : read.changes) {
    if (!(change.at_s > before)) broken("times of a trace do not ascend");
    before = change.at_s;
    if (change.count.size() != read.pools.size()) broken("counts are not of all pools");
    for (const int count : change.count) {
      if (count < 0) broken("fewer GPUs than none");
    }
  }
  if (!(read.end_s >= before)) broken("a trace ends before its last change");
}

void catalog(const std::string& input) {
  require_text(input, "catalog.yaml");
  parse_catalog(input, "catalog.yaml");
}

void site_config(const std::string& input) {
  require_text(input, "sailor.yaml");
  parse_site_config(input, "sailor.yaml");
}

void plan(const std::string& input) {
  static const JobSpec job = parse_job_spec(
      "model: {name: tiny, family: gpt2, layers: 4, hidden: 64, heads: 4, sequence: 128, vocabulary: 256}\n"
      "training: {global_batch: 8, steps: 10}\ndata: {train: text.bin}\n",
      "job.yaml");
  static const Snapshot cluster = parse_snapshot(
      "sailor_snapshot: 1\nnodes:\n  - {name: q1, zone: east, gpu_type: quick, gpus: 2}\n"
      "  - {name: s1, zone: west, gpu_type: steady, gpus: 4}\n",
      "snapshot.yaml");
  require_text(input, "plan.json");
  const Plan read = parse_plan(input, "plan.json");
  const bool valid = check_plan(read, job).empty();
  const bool placed = check_plan(read, cluster).empty();
  summary(read);
  if (valid && placed && num_ranks(read) > 6) broken("a plan has more ranks than the cluster has GPUs");
  const std::string written = to_json(read);
  if (to_json(parse_plan(written, "written.json")) != written)
    broken("a plan changes when it is written and read");
  if (to_json(unpack_plan(pack_plan(read), "packed")) != written)
    broken("a plan changes when it is packed and unpacked");
}

void packed_plan(const std::string& input) {
  unpack_plan(input, "SLURM_SPANK_PLAN");
}

void measured_run(const std::string& input) {
  require_text(input, "run.json");
  const MeasuredRun read = parse_measured_run(input, "run.json");
  read.measured_s();
  read.measured_bytes();
  const std::string written = to_json(read);
  if (to_json(parse_measured_run(written, "written.json")) != written)
    broken("a measured run changes when it is written and read");
}

void assumptions(const std::string& input) {
  const auto files = split_bundle(input);
  const auto read = [&](const char* name, const auto& parse) {
    const auto file = files.find(name);
    if (file == files.end()) return;
    require_text(file->second, name);
    parse(file->second, name);
  };
  read("framework.yaml",
       [](const std::string& text, const char* name) { parse_framework_style(text, name); });
  read("platform.yaml", [](const std::string& text, const char* name) { parse_platform(text, name); });
  read("calibration.json", [](const std::string& text, const char* name) { parse_calibration(text, name); });
}

// From files to a plan, as `sailor plan` does, then `sailor simulate` of what was found.
void planning(const std::string& input) {
  static const Directory directory({"job.yaml", "sailor.yaml", "catalog.yaml", "snapshot.yaml",
                                    "profiles/quick.json", "profiles/steady.json", "profiles/network.json"});
  directory.fill(split_bundle(input));
  const PlanningInputs inputs =
      load_inputs(directory.path("job.yaml"), directory.path("sailor.yaml"), {},
                  [&](const SiteConfig&) { return load_snapshot(directory.path("snapshot.yaml")); });
  PlanOptions options;
  options.time_limit_s = 0.02;
  for (CostModel model : {CostModel::native, CostModel::published}) {
    options.cost_model = model;
    options.space = model == CostModel::native ? SearchSpace::full : SearchSpace::paper;
    const SearchResult result = search(inputs.context(), options);
    result_json(inputs.context(), result);
    candidate_table(inputs.context(), result);
    for (const Candidate& candidate : result.candidates) {
      if (!check_plan(candidate.plan, inputs.job).empty()) broken("a plan found is not valid for its job");
      if (!check_plan(candidate.plan, inputs.snapshot).empty())
        broken("a plan found does not fit the cluster");
      const Prediction again = simulate(inputs.context(), candidate.plan, model);
      if (again.iteration_s != candidate.prediction.iteration_s) broken("a prediction differs when repeated");
      if (!(again.iteration_s > 0)) broken("an iteration takes no time");
    }
    if (!result.candidates.empty()) stage_table(result.candidates[0].plan, result.candidates[0].prediction);
  }
}

}  // namespace

const std::map<std::string, Target>& targets() {
  static const std::map<std::string, Target> all = {{"snapshot", snapshot},
                                                    {"layer_profile", layer_profile},
                                                    {"network_profile", network_profile},
                                                    {"reference", reference_profiles},
                                                    {"json_parts", json_parts},
                                                    {"job_spec", job_spec},
                                                    {"catalog", catalog},
                                                    {"site_config", site_config},
                                                    {"plan", plan},
                                                    {"packed_plan", packed_plan},
                                                    {"measured_run", measured_run},
                                                    {"trace", trace},
                                                    {"assumptions", assumptions},
                                                    {"planning", planning}};
  return all;
}

}  // namespace sailor::fuzz
