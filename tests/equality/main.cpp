// Does the trainer compute what one process computes? Draws small jobs and plans from a seed, trains 20
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
// Tolerances: 1e-5 in fp32 and 1e-12 in fp64. In bf16 the reference stays in fp32 (from the same initial
// values), and the bound is derived: rounding to 8 significant bits is off by u = 2^-9 of a value at most.
// The longest path of a block, forward and backward, has 48 rounded results (8 products, their inputs and
// sums, two norms, two residuals, GELU and softmax; twice as many backward as forward), and the weights of
// its 6 products forward and 12 backward are rounded copies of the masters: 66 independent errors, and 16 at
// the ends of the model. They add up like a random walk, u sqrt(66 layers + 16), and the largest of the many
// elements of a gradient is up to four deviations off. Dropout rounds once more at each of its places, two in
// a block and one at the end, and again backward. A loss is the mean of many tokens' and stays within u.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>

#include "planner/spec/error.h"
#include "tests/equality/backends.h"
#include "tests/equality/lost_ranks.h"
#include "tests/equality/reference/families.h"
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
  constexpr double kUnit = 1.0 / 512;
  const bool dropout = job.model.dropout > 0;
  const double errors = (dropout ? 70.0 : 66.0) * job.model.layers + (dropout ? 18 : 16);
  return {kUnit, 4 * kUnit * std::sqrt(errors)};
}

int run(int argc, char** argv) {
  CaseOptions options;
  int count = 1;
  std::string backend = "thread", rank_directory;
  bool tell = false, gpus = false, families = false;
  CLI::App app{"Compares the trainer with plain autograd on one process"};
  std::map<std::string, Precision> precisions;
  for (const PrecisionKind& kind : kPrecisions) precisions[kind.name] = kind.precision;
  app.add_option("--seed", options.seed, "seed of the cases");
  app.add_option("--count", count, "number of cases")->check(CLI::PositiveNumber);
  app.add_option("--dtype", options.precision, "fp32, fp64 or bf16")
      ->transform(CLI::CheckedTransformer(precisions));
  app.add_option("--backend", backend, "thread or mpi; with --lose-ranks thread or socket")
      ->check(CLI::IsMember({"thread", "mpi", "socket"}));
  app.add_option("--layout", options.layout, "TP degrees, stages by `,`, pipelines by `/`, such as 4,1/2");
  app.add_option("--family", options.family, "model family");
  app.add_flag("--families", families, "print the names of all families, and compare nothing");
  app.add_flag("--resume", options.resume,
               "go on for as many steps under a second plan, from a checkpoint; thread backend");
  app.add_flag(
      "--lose-ranks", options.lose_ranks,
      "lose ranks at random points, and go on for as many steps with what the others have, under other "
      "plans and with ranks that join; thread backend, or socket");
  app.add_flag("--gpus", gpus, "every rank computes on a GPU of its own; thread backend");
  app.add_flag("--tell", tell, "with --lose-ranks: what was lost where, on stderr");
  app.add_option("--as-rank-in", rank_directory)->group("");  // how the program starts itself under mpirun
  app.add_option("--index", options.index)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kBadInput;
  }

  if (families) {
    for (const ModelFamily& family : model_families()) fmt::print("{}\n", family.name);
    return kDone;
  }
  if (options.resume && backend != "thread") throw InputError("--resume: needs --backend thread");
  if (options.lose_ranks && backend == "mpi")
    throw InputError("--lose-ranks: needs --backend thread or socket");
  if (!options.lose_ranks && backend == "socket") throw InputError("--backend socket: needs --lose-ranks");
  if (options.resume && options.lose_ranks) throw InputError("--resume: not with --lose-ranks");
  if (gpus && (backend != "thread" || options.lose_ranks)) throw InputError("--gpus: needs --backend thread");
  at::set_num_threads(1);
  scalar_type(options.precision);  // says what cannot be trained
  model_family(options.family);
  reference_family(options.family);
  if (!rank_directory.empty()) return run_as_mpi_rank(options, rank_directory);

  fmt::print("# seed {}\ncase,layout,features,loss_err,grad_err,max_in_flight,ok\n", options.seed);
  bool all_ok = true;
  for (options.index = 0; options.index < count; ++options.index) {
    const Case c = make_case(options);
    Outcome outcome;
    bool ok = false;
    try {
      const auto reference = run_reference(c.job, initial_values_of(c.job), c.data(),
                                           options.resume || options.lose_ranks ? 2 * kSteps : kSteps);
      std::string problem;
      if (options.lose_ranks) {
        const LossesOutcome losses = train_with_losses(options, c, backend, reference);
        outcome = losses.outcome;
        problem = losses.problem;
        if (tell || !problem.empty()) fmt::print(stderr, "case {}: {}\n", options.index, losses.story);
        if (!problem.empty()) fmt::print(stderr, "case {}: {}\n", options.index, problem);
      } else {
        outcome = backend == "mpi" ? run_on_mpi(options, c, reference) : run_on_threads(c, reference, gpus);
      }
      const Tolerance limit = tolerance(c.job);
      ok = outcome.loss_err <= limit.loss && outcome.grad_err <= limit.gradient && outcome.in_flight_ok &&
           problem.empty();
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
    all_ok = all_ok && ok;
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
