// Does the trainer compute what one process computes? Draws small jobs and plans from a seed, trains 8
// steps, and compares every loss and every gradient with plain autograd (reference_model.cpp). One CSV row
// per case on stdout; exit 1 when any fails.
//
// AdamW needs care here. Where a gradient element is little more than rounding noise, g / (sqrt(v) + epsilon)
// blows the noise up to a full step of lr, and any two orders of summation drift apart. That is no property
// of the trainer: with epsilon 1e-4, the plain fp32 reference itself ends up to 3e-5 away from the same
// reference in fp64. case.cpp therefore sets epsilon to 1e-3, the size of a small gradient element here, and
// lr to 1e-4, on both sides alike: a difference of gradients comes back as lr / epsilon of it in the weights,
// and a deep model with norms over small activations multiplies that step after step. (Ten blocks of Llama
// at lr 3e-4: the reference is 9e-6 off fp64 after 20 steps, the trainer 1.5e-5 off the reference; at 1e-4 it
// is 1.6e-6 and 1.2e-6.)
//
// Tolerances: 1e-5 in fp32 and 1e-12 in fp64; where a case exceeds its tolerance, four times what rounding
// alone does to the reference (rounding.h): deep models with norms after their blocks amplify it.
//
// In bf16 the reference stays in fp32 (from the same initial values), and the bound is derived: rounding to 8
// significant bits is off by u = 2^-9 of a value at most. The longest path of a block, forward and backward,
// has 48 rounded results (8 products, their inputs and sums, two norms, two residuals, GELU and softmax;
// twice as many backward as forward), and the weights of its 6 products forward and 12 backward are rounded
// copies of the masters: 66 independent errors, and 16 at the ends of the model. They add up like a random
// walk, u sqrt(66 layers + 16), and the largest of the many elements of a gradient is up to four deviations
// off. Dropout rounds once more at each of its places, two in a block and one at the end, and again backward;
// a norm beyond the two of a block, once forward and twice backward. A loss is the mean of many tokens' and
// stays within u.
//
// fp16 rounds to 11 significant bits, u = 2^-12, while the loss scale keeps gradients above its smallest
// normal number; the bounds are the same otherwise. The scale of every step is compared too. With
// --force-overflow it starts far too high: the trainer runs once to see which steps it skips, the same on all
// ranks, and again for the comparison with a reference that skips the same steps. Where exactly a scale
// overflows depends on rounding, and so on the plan.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "planner/spec/error.h"
#include "tests/equality/backends.h"
#include "tests/equality/lost_ranks.h"
#include "tests/equality/rounding.h"
#include "trainer/gpu/gpu.h"
#include "trainer/model/element_types.h"
#include "trainer/model/registry.h"

namespace sailor::equality {
namespace {

struct Tolerance {
  double loss = 0, gradient = 0;
};

Tolerance tolerance(const JobSpec& job) {
  if (job.training.precision == Precision::fp64) return {1e-12, 1e-12};
  if (job.training.precision == Precision::fp32) return {1e-5, 1e-5};
  const double unit = job.training.precision == Precision::fp16 ? 1.0 / 4096 : 1.0 / 512;
  const bool dropout = job.model.dropout > 0;
  const int norms =
      (job.model.norm_place == NormPlace::both ? 2 : 0) + (job.model.qk_norm == QkNorm::none ? 0 : 2);
  const double errors = (66.0 + (dropout ? 4 : 0) + 3 * norms) * job.model.layers + (dropout ? 18 : 16);
  return {unit, 4 * unit * std::sqrt(errors)};
}

// Where a case exceeds its limit, rounding alone may, too: four times that is allowed.
void widen(Tolerance& limit, const Case& c, const Outcome& outcome,
           const std::vector<ReferenceStep>& reference) {
  if (outcome.loss_err <= limit.loss && outcome.grad_err <= limit.gradient) return;
  const Outcome rounding = rounding_of(c, reference);
  fmt::print(stderr, "rounding alone: loss_err {:.2e}, grad_err {:.2e}\n", rounding.loss_err,
             rounding.grad_err);
  limit.loss = std::max(limit.loss, 4 * rounding.loss_err);
  limit.gradient = std::max(limit.gradient, 4 * rounding.grad_err);
}

// Steps that a loss scale that starts far too high does not skip: the first ones must be, and later ones too,
// but by far not all.
std::string unlikely(const std::vector<bool>& skipped) {
  const auto updated = std::find(skipped.begin(), skipped.end(), false);
  if (updated - skipped.begin() < 4) return "the first steps did not overflow";
  if (std::find(updated, skipped.end(), true) == skipped.end()) return "the scale did not grow too far again";
  if (std::count(skipped.begin(), skipped.end(), false) < 4) return "almost all steps overflowed";
  return {};
}

// What comes of one case: the outcome, and what else is wrong.
std::string run_case(const CaseOptions& options, const Case& c, const std::string& backend, bool gpus,
                     bool tell, Outcome& outcome, Tolerance& limit) {
  const std::vector<bool> skipped =
      options.force_overflow ? skipped_on_threads(c, gpus) : std::vector<bool>();
  const int steps = options.resume || options.lose_ranks ? 2 * c.steps : c.steps;
  auto reference = run_reference(c.job, initial_values_of(c.job), c.data(), steps, skipped);
  if (std::any_of(reference.begin(), reference.end(),
                  [](const ReferenceStep& step) { return step.close_call; }))
    reference = run_reference(c.job, initial_values_of(c.job), c.data(), steps, skipped_on_threads(c, gpus));
  if (options.lose_ranks) {
    const LossesOutcome losses = train_with_losses(options, c, backend, reference);
    outcome = losses.outcome;
    widen(limit, c, outcome, reference);
    if (tell || !losses.problem.empty()) fmt::print(stderr, "case {}: {}\n", options.index, losses.story);
    return losses.problem;
  }
  outcome = backend == "thread" ? run_on_threads(c, reference, gpus)
                                : run_in_processes(options, c, reference, backend == "mpi", gpus);
  widen(limit, c, outcome, reference);
  return options.force_overflow ? unlikely(skipped) : "";
}

// Prints the row of a case; true if it is as it should be.
bool compare_case(const CaseOptions& options, const std::string& backend, bool gpus, bool tell) {
  const Case c = make_case(options);
  Outcome outcome;
  bool ok = false;
  try {
    Tolerance limit = tolerance(c.job);
    const std::string problem = run_case(options, c, backend, gpus, tell, outcome, limit);
    ok = outcome.loss_err <= limit.loss && outcome.grad_err <= limit.gradient && outcome.in_flight_ok &&
         problem.empty();
    if (!problem.empty()) fmt::print(stderr, "case {}: {}\n", options.index, problem);
    if (!ok) fmt::print(stderr, "case {}: worst is {}\n", options.index, outcome.worst);
  } catch (const InputError&) {
    throw;
  } catch (const std::exception& error) {
    fmt::print(stderr, "case {}: {}\n", options.index, error.what());
    outcome.loss_err = outcome.grad_err = std::numeric_limits<double>::infinity();
  }
  fmt::print("{},\"{}\",{},{:.2e},{:.2e},{},{}\n", options.index, c.layout, c.features, outcome.loss_err,
             outcome.grad_err, outcome.max_in_flight, ok ? "yes" : "no");
  std::fflush(stdout);
  return ok;
}

// Of a list on the command line; empty: any.
std::optional<PlanFeatures> features_of_case(const std::string& list, int index) {
  if (list.empty()) return std::nullopt;
  if (list != "all") return parse_plan_features(list);
  const PlanFeatures all = all_plan_features();
  if (index >= static_cast<int>(all.size())) return std::nullopt;
  return parse_plan_features(to_string(*std::next(all.begin(), index)));
}

int run(int argc, char** argv) {
  CaseOptions options;
  int count = 1;
  std::string backend = "thread", rank_directory, features;
  bool tell = false, gpus = false, families = false;
  CLI::App app{"Compares the trainer with plain autograd on one process"};
  std::map<std::string, Precision> precisions;
  for (const PrecisionKind& kind : kPrecisions) precisions[kind.name] = kind.precision;
  app.add_option("--seed", options.seed, "seed of the cases");
  app.add_option("--count", count, "number of cases")->check(CLI::PositiveNumber);
  app.add_option("--dtype", options.precision, "fp32, fp64, bf16 or fp16")
      ->transform(CLI::CheckedTransformer(precisions));
  app.add_option(
         "--backend", backend,
         "thread, process (ranks are processes) or mpi (mpirun starts them); with --lose-ranks thread or "
         "socket")
      ->check(CLI::IsMember({"thread", "process", "mpi", "socket"}));
  app.add_option("--layout", options.layout, "TP degrees, stages by `,`, pipelines by `/`, such as 4,1/2");
  app.add_option("--family", options.family, "model family");
  app.add_flag("--families", families, "print the names of all families, and compare nothing");
  app.add_flag("--resume", options.resume,
               "go on for as many steps under a second plan, from a checkpoint; thread backend");
  app.add_flag(
      "--lose-ranks", options.lose_ranks,
      "lose ranks at random points, and go on for as many steps with what the others have, under other "
      "plans and with ranks that join; thread backend, or socket");
  app.add_flag("--force-overflow", options.force_overflow,
               "with --dtype fp16: a loss scale with which gradients overflow; thread backend");
  std::map<std::string, Zero> degrees;
  for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters})
    degrees[to_string(zero)] = zero;
  app.add_option("--zero", options.zero,
                 "what the replicas of a stage share: none, optimizer, gradients or parameters; else drawn")
      ->transform(CLI::CheckedTransformer(degrees));
  app.add_flag("--sequence-parallel", options.sequence_parallel,
               "split tokens over TP groups, as every second case does without it");
  app.add_flag("--muon", options.muon, "the optimizer is Muon, as in every fourth case or so without it");
  app.add_flag("--lora", options.lora, "train adapters (LoRA), as every fourth case or so does without it");
  app.add_option(
      "--features", features,
      "features of plans, as of `sailor plan --allow`, that all plans have, and no others; all: each "
      "one alone, then cases with any of them");
  app.add_flag("--gpus", gpus, "ranks compute on GPUs; thread backend, or process");
  app.add_flag("--tell", tell, "with --lose-ranks: what was lost where, on stderr");
  app.add_option("--as-rank-in", rank_directory)->group("");  // how the program starts itself
  app.add_option("--index", options.index)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kBadInput;
  }

  if (families) {
    for (const std::string& family : known_families()) fmt::print("{}\n", family);
    return kDone;
  }
  if (options.resume && backend != "thread") throw InputError("--resume: needs --backend thread");
  if (options.lose_ranks && backend != "thread" && backend != "socket")
    throw InputError("--lose-ranks: needs --backend thread or socket");
  if (!options.lose_ranks && backend == "socket") throw InputError("--backend socket: needs --lose-ranks");
  if (options.resume && options.lose_ranks) throw InputError("--resume: not with --lose-ranks");
  if (gpus && ((backend != "thread" && backend != "process") || options.lose_ranks))
    throw InputError("--gpus: needs --backend thread or process");
  if (options.force_overflow &&
      (options.precision != Precision::fp16 || backend != "thread" || options.lose_ranks))
    throw InputError("--force-overflow: needs --dtype fp16 and --backend thread, without --lose-ranks");
  at::set_num_threads(1);
  scalar_type(options.precision);  // says what cannot be trained
  model_family(options.family);
  if (gpus && backend == "thread")
    options.most_ranks = std::max(1, std::min(options.most_ranks, gpu_count()));
  options.features = features_of_case(features, options.index);
  if (!rank_directory.empty()) return run_as_rank(options, rank_directory, gpus);

  fmt::print("# seed {}\ncase,layout,features,loss_err,grad_err,max_in_flight,ok\n", options.seed);
  bool all_ok = true;
  for (options.index = 0; options.index < count; ++options.index) {
    options.features = features_of_case(features, options.index);
    all_ok = compare_case(options, backend, gpus, tell) && all_ok;
  }
  return all_ok ? kDone : kFailed;
}

}  // namespace
}  // namespace sailor::equality

int main(int argc, char** argv) {
  try {
    return sailor::equality::run(argc, argv);
  } catch (const sailor::InputError& error) {
    std::fprintf(stderr, "sailor: %s\n", error.what());
    return sailor::kBadInput;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sailor: %s\n", error.what());
    return sailor::kFailed;
  }
}
