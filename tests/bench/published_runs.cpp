#include "tests/bench/published_runs.h"

#include <fmt/format.h>

#include <cmath>

#include "planner/profile/profile_set.h"
#include "planner/report/accuracy.h"
#include "planner/simulator/simulate.h"
#include "planner/spec/catalog.h"
#include "planner/spec/framework_style.h"
#include "planner/spec/snapshot.h"
#include "planner/spec/transformer_shape.h"
#include "tests/convert/csv.h"
#include "tests/convert/uniform_plan.h"

namespace sailor::bench {
namespace {

constexpr double kStatedTolerancePct = 2;  // sources round, and pad vocabularies

// Per trained token, as the sources count: six per parameter of a product, and the attention's without the
// discount for causal masks.
double flops_per_token(const TransformerShape& shape) {
  const double products = static_cast<double>(shape.layers * shape.block_parameters()) +
                          static_cast<double>(shape.vocabulary) * shape.hidden;
  return 6 * products + 12.0 * shape.layers * shape.heads * shape.head_width * shape.sequence;
}

double mfu_pct(const PublishedRun& run, double iteration_s) {
  const double flops = flops_per_token(shape_of(run.job.model)) * run.job.tokens_per_iteration();
  const double peak = *load_catalog("").at(run.gpu_type).flops(run.job.training.precision);
  return 100 * flops / (iteration_s * peak * num_ranks(run.plan));
}

Recompute recompute_of(const convert::CsvRow& row) {
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
    if (row.text("recompute") == to_string(recompute)) return recompute;
  row.fail("recompute must be none, selective or full");
}

PublishedRun run_of(const convert::CsvRow& row) {
  PublishedRun run;
  run.name = row.text("run");
  run.where = row.where();
  run.job =
      parse_job_spec(fmt::format("model: {}\ntraining: {{global_batch: {}, precision: bf16, steps: 1}}\n"
                                 "data: {{train: none}}\n",
                                 row.text("model"), row.text("global_batch")),
                     row.where().text());
  run.gpu_type = row.text("gpu_type");
  run.framework = row.text("framework");
  run.options = row.text("options");
  convert::UniformPlan uniform;
  uniform.model = run.job.model.name;
  uniform.tp = row.integer("tp");
  uniform.pp = row.integer("pp");
  uniform.cp = row.empty("cp") ? 1 : row.integer("cp");
  uniform.dp = row.integer("gpus") / (uniform.tp * uniform.cp * uniform.pp);
  uniform.interleave = row.integer("interleave");
  uniform.cuts = convert::even_cuts(run.job.model.layers, uniform.pp * uniform.interleave);
  uniform.microbatch = row.integer("microbatch");
  uniform.global_batch = run.job.training.global_batch;
  uniform.gpu_type = run.gpu_type;
  uniform.recompute = recompute_of(row);
  uniform.zero = row.flag("zero1") ? Zero::optimizer : Zero::none;
  run.plan = uniform.plan();
  if (!row.empty("zero_group")) run.plan.zero_group = row.integer("zero_group");
  run.iteration_s = row.empty("iteration_s") ? run.job.tokens_per_iteration() / row.number("tokens_per_s")
                                             : row.number("iteration_s");
  run.stated_mfu_pct = row.optional_number("stated_mfu_pct");
  run.is_like_ours = row.flag("ours_like");
  run.not_modelled = row.text("not_modelled");
  run.source = row.text("source");
  if (run.source.empty()) row.fail("a published run needs its source");
  const double mfu = mfu_pct(run, run.iteration_s);
  if (run.stated_mfu_pct && std::abs(mfu / *run.stated_mfu_pct - 1) > kStatedTolerancePct / 100)
    row.fail(fmt::format("its time is an MFU of {:.2f} %, not {:.2f} %", mfu, *run.stated_mfu_pct));
  return run;
}

}  // namespace

std::vector<PublishedRun> load_published_runs(const std::string& path) {
  convert::Csv csv;
  convert::load_csv(path, csv);
  std::vector<PublishedRun> runs;
  for (const convert::CsvRow& row : csv.rows) runs.push_back(run_of(row));
  return runs;
}

MfuRow predict_mfu(const PublishedRun& run, const Assumptions& assumptions) {
  const Catalog catalog = load_catalog("");
  const auto predict = [&](FrameworkStyle framework) {
    if (const size_t sign = run.options.find('='); sign != std::string::npos)
      framework.set(run.options.substr(0, sign), run.options.substr(sign + 1), run.where);
    const ProfileSet profiles = load_profiles({}, run.job, catalog, framework);
    const Snapshot snapshot;
    return simulate({run.job, snapshot, catalog, profiles, framework}, run.plan);
  };
  const Prediction ours = predict(own_framework(Ranks::gpus));
  return {mfu_pct(run, run.iteration_s),
          mfu_pct(run, predict(assumptions.framework(run.framework)).iteration_s),
          mfu_pct(run, ours.iteration_s), ours.fits};
}

bool print_mfu_table(const std::vector<PublishedRun>& runs, const Assumptions& assumptions) {
  fmt::print(
      "run,gpus,framework,mfu_pct,predicted_pct,err_pct,ours_pct,ours_err_pct,like_ours,fits,not_modelled,"
      "source\n");
  bool good = true;
  std::vector<Pair> pairs;
  for (const PublishedRun& run : runs) {
    const MfuRow row = predict_mfu(run, assumptions);
    const double error = error_pct(row.predicted_pct, row.published_pct);
    fmt::print("{},{},{},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{},{},{},{}\n", run.name, num_ranks(run.plan),
               run.framework, row.published_pct, row.predicted_pct, error, row.ours_pct,
               error_pct(row.ours_pct, row.published_pct), run.is_like_ours ? "yes" : "no",
               row.fits ? "yes" : "no", run.not_modelled, run.source);
    if (!run.is_like_ours) continue;
    pairs.push_back({row.predicted_pct, row.published_pct});
    good &= std::abs(error) <= kMostErrorPct;
  }
  const ErrorSummary errors = summarize(pairs);
  fmt::print("# mfu {} {:.2f} {:.2f} {:.2f} {:.2f} - -\n", errors.n, errors.mean_pct, errors.median_pct,
             errors.p95_pct, errors.max_pct);
  return good;
}

}  // namespace sailor::bench
