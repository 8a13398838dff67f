// sailor: the command line. This file has the grammar; each verb is in the file of its name.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>

#include "planner/cli/commands.h"
#include "planner/cli/external.h"
#include "planner/cli/output.h"
#include "planner/cli/program.h"
#include "planner/report/framework_config.h"
#include "planner/search/pareto.h"
#include "planner/spec/error.h"
#include "planner/spec/text.h"
#include "planner/spec/trainer_spec.h"

namespace sailor::cli {
namespace {

const std::vector<std::string> kBuiltIn = {"calibrate", "cluster",  "explain",  "model",
                                           "pareto",    "plan",     "replay",   "report",
                                           "schema",    "simulate", "validate", "version"};

// Adds an option whose text a parser of planner/spec/overrides.h turns into `target`.
template <typename T, typename Parse>
void add_parsed(CLI::App* app, const std::string& name, T& target, Parse parse, const std::string& help,
                const std::string& value) {
  app->add_option_function<std::string>(
         name, [&target, name, parse](const std::string& text) { target = parse(text, name); }, help)
      ->type_name(value);
}

// `framework`: for verbs that also write configurations of frameworks, the name of the format.
void add_format(CLI::App* app, Format& format, std::vector<std::string> names,
                std::string* framework = nullptr) {
  if (framework != nullptr)
    for (const ConfigFormat& config : config_formats()) names.emplace_back(config.name);
  add_parsed(
      app, "--format", format,
      [names, framework](const std::string& text, const std::string& option) {
        if (std::find(names.begin(), names.end(), text) == names.end()) {
          throw InputError(option + ": must be " + alternatives(names) + ", is " + in_quotes(text) +
                           did_you_mean(text, names));
        }
        if (framework != nullptr && find_config_format(text) != nullptr) {
          *framework = text;
          return Format::framework;
        }
        if (text == "csv") return Format::csv;
        if (text == "markdown") return Format::markdown;
        return text == "json" ? Format::json : text == "yaml" ? Format::yaml : Format::table;
      },
      "output format: " + alternatives(names), "FORMAT");
}

void add_result(CLI::App* app, std::string& result) {
  app->add_option("--result", result, "also write the result as JSON to this file")->type_name("RESULT.json");
}

void add_config(CLI::App* app, std::string& config) {
  app->add_option("--config", config, "site config (default: $SAILOR_CONFIG, else /etc/sailor/sailor.yaml)")
      ->type_name("FILE");
}

// The options of every verb that searches: input files and limits.
void add_source(CLI::App* verb, PlanSource& source, const std::string& time_limit) {
  verb->add_option("job", source.job, "job spec (YAML)")->required()->type_name("JOB");
  verb->add_option("--cluster", source.cluster, "cluster snapshot (default: the live cluster)")
      ->type_name("FILE");
  add_config(verb, source.config);
  PlanOverrides& overrides = source.overrides;
  for (const Expense expense : kExpenses) {
    const ExpenseKind& kind = kind_of(expense);
    const auto parse = [expense](const std::string& text, const std::string& option) {
      return parse_limit(expense, text, option);
    };
    add_parsed(verb, fmt::format("--{}", kind.option), overrides.most[expense], parse,
               fmt::format("maximum {} per iteration", kind.unit), kind.unit);
  }
  add_parsed(verb, "--min-throughput", overrides.min_iterations_per_s, parse_min_throughput,
             "minimum iterations per second", "ITER/S");
  add_parsed(verb, "--max-gpus", overrides.max_gpus, parse_max_gpus,
             "maximum GPUs of each type; TYPE@ZONE=N: in that zone; total=N: of all types", "TYPE=N,...");
  add_parsed(verb, "--zones", overrides.zones, parse_name_list, "use only these zones", "ZONE,...");
  verb->add_option(
          "--trainer", source.trainer,
          fmt::format(
              "plan for programs of this framework: {}; {}: for Sailor's own trainer (default: as the job "
              "spec says)",
              fmt::join(trainer_kind_names(), ", "), kOwnTrainer))
      ->type_name("KIND");
  verb->add_option("--search-space", source.search_space, "paper or full (default: full)")
      ->type_name("SPACE");
  verb->add_option("--cost-model", source.cost_model, "native or published (default: native)")
      ->type_name("MODEL");
  add_parsed(
      verb, "--allow", source.allow,
      [](const std::string& text, const std::string& option) {
        try {
          return parse_plan_features(text);
        } catch (const InputError& error) {
          throw InputError(option + ": " + error.what());
        }
      },
      fmt::format(
          "features that plans of the full space may use: {}; or all; or none (default: those that the "
          "trainer supports)",
          fmt::join(plan_feature_names(), ", ")),
      "FEATURE,...");
  add_parsed(verb, "--time-limit", source.time_limit_s, parse_time_limit, time_limit, "S");
  add_parsed(verb, "--effort", source.effort, parse_effort,
             "factor on the search effort, and roughly on the search time (default: the site's)", "FACTOR");
  verb->add_flag("-q,--quiet", source.quiet, "no progress on stderr");
}

// `--run` replaces the job, and the plan where one is needed.
void add_run(CLI::App* verb, std::string& run, const std::vector<std::string>& instead) {
  verb->add_option("--run", run, "use job, plan and planning inputs of this run (job id or directory)")
      ->type_name("RUN");
  for (const std::string& name : instead) verb->get_option(name)->required(false);
  verb->callback([verb, &run, instead] {
    for (const std::string& name : instead)
      if (run.empty() && verb->get_option(name)->count() == 0) throw CLI::RequiredError(name);
  });
}

void add_objective(CLI::App* verb, PlanSource& source) {
  add_parsed(verb, "--objective", source.overrides.objective, parse_objective_option,
             alternatives(objective_names()), "OBJECTIVE");
}

// `--model` replaces the job.
void add_model_source(CLI::App* verb, PlanSource& source) {
  verb->get_option("job")->required(false);
  CLI::Option* model = verb->add_option("--model", source.model, "plan this model, without a job spec")
                           ->type_name("CONFIG.json");
  verb->get_option("job")->excludes(model);
  verb->add_option("--sequence", source.sequence,
                   "with --model: tokens per sequence (default: the longest that the model was made for)")
      ->type_name("N")
      ->check(within(1, 100'000'000))
      ->needs(model);
  verb->add_option("--global-batch", source.global_batch,
                   "with --model: sequences per iteration (default: 256)")
      ->type_name("N")
      ->check(within(1, 1'000'000'000))
      ->needs(model);
  add_parsed(verb, "--precision", source.precision, parse_precision,
             "with --model: " + alternatives(precision_names()) + " (default: bf16)", "PRECISION");
  verb->get_option("--precision")->needs(model);
  verb->callback([verb] {
    if (verb->get_option("job")->count() + verb->get_option("--model")->count() == 0)
      throw CLI::RequiredError("job");
  });
}

CLI::App* add_model(CLI::App& app, ModelCommand& command) {
  CLI::App* verb = app.add_subcommand("model", "show parameters and FLOPs of a model, and of its layers");
  verb->add_option("model", command.model, "config.json of the model, its directory, or a job spec (YAML)")
      ->required()
      ->type_name("MODEL");
  verb->add_option("--sequence", command.sequence,
                   "tokens per sequence (default: the job's, or the longest that the model was made for)")
      ->type_name("N")
      ->check(within(1, 100'000'000));
  add_format(verb, command.format, {"table", "json"});
  return verb;
}

CLI::App* add_plan(CLI::App& app, PlanCommand& command) {
  CLI::App* verb = app.add_subcommand("plan", "find the best plan for a job");
  add_source(verb, command.source, "time limit of the search (default: the site's)");
  add_model_source(verb, command.source);
  add_objective(verb, command.source);
  verb->add_option("--top", command.top, "number of candidates to show (default: 5)")
      ->type_name("K")
      ->check(within(1, 1000));
  add_format(verb, command.format, {"table", "json", "yaml"}, &command.framework);
  add_result(verb, command.result);
  verb->add_option(
          "--previous", command.previous,
          "replan, starting from this previous plan, or from the --format json output that it came from")
      ->type_name("PLAN.json");
  verb->add_option("-o,--output", command.output, "write the chosen plan to this file")
      ->type_name("PLAN.json");
  return verb;
}

CLI::App* add_explain(CLI::App& app, ExplainCommand& command) {
  CLI::App* verb = app.add_subcommand(
      "explain", "explain why a plan was chosen, its bottlenecks and what would change it");
  add_source(
      verb, command.source,
      "time limit of the search (default: the site's); the what-if searches together take up to 1.5 times "
      "as long");
  add_objective(verb, command.source);
  verb->add_option("plan,--plan", command.plan, "plan to explain (default: the best plan found)")
      ->type_name("PLAN.json");
  add_run(verb, command.run, {"job"});
  add_format(verb, command.format, {"table", "json", "yaml"});
  add_result(verb, command.result);
  return verb;
}

CLI::App* add_pareto(CLI::App& app, ParetoCommand& command) {
  CLI::App* verb =
      app.add_subcommand("pareto", "show throughput against cost: plans from the cheapest to the fastest");
  add_objective(verb, command.source);
  add_source(
      verb, command.source,
      "time limit of each search (default: the site's); all of them take up to --points times as long");
  verb->add_option("--points", command.points, "maximum number of plans to show (default: 10)")
      ->type_name("N")
      ->check(within(2, kMostParetoPoints));
  add_format(verb, command.format, {"table", "json", "yaml"});
  add_result(verb, command.result);
  verb->add_flag_callback(
      "--json", [&command] { command.format = Format::json; }, "the same as --format json");
  verb->add_option("--svg", command.svg, "plot throughput against cost, or against the objective")
      ->type_name("FILE");
  return verb;
}

CLI::App* add_simulate(CLI::App& app, SimulateCommand& command) {
  CLI::App* verb = app.add_subcommand("simulate", "predict time, memory and cost of a plan");
  verb->add_option("job", command.job, "job spec (YAML)")->required()->type_name("JOB");
  verb->add_option("plan", command.plan, "plan (JSON)")->required()->type_name("PLAN");
  add_run(verb, command.run, {"job", "plan"});
  verb->add_option("--cluster", command.cluster, "cluster snapshot, for prices and to check the nodes")
      ->type_name("FILE");
  add_config(verb, command.config);
  verb->add_option("--cost-model", command.cost_model, "native or published (default: native)")
      ->type_name("MODEL");
  add_format(verb, command.format, {"table", "json", "yaml"});
  add_result(verb, command.result);
  verb->add_option("--html", command.html, "write an HTML page with tables and the timeline of an iteration")
      ->type_name("FILE");
  verb->add_option("--svg", command.svg, "write the timeline as SVG")->type_name("FILE");
  verb->add_option("--trace", command.trace, "write the timeline for chrome://tracing and Perfetto")
      ->type_name("FILE");
  return verb;
}

void add_assumptions(CLI::App* verb, std::string& assumptions) {
  verb->add_option("--assumptions", assumptions,
                   "directory with catalog, platforms and frameworks (default: $SAILOR_ASSUMPTIONS, else "
                   "share/sailor of this installation)")
      ->type_name("DIR");
}

CLI::App* add_validate(CLI::App& app, ValidateCommand& command) {
  CLI::App* verb = app.add_subcommand("validate", "compare predictions with measured runs");
  verb->add_option("dataset", command.dataset, "measured runs: a directory, a *.json or a *.jsonl file")
      ->required()
      ->type_name("DATASET");
  add_config(verb, command.config);
  add_assumptions(verb, command.assumptions);
  verb->add_option("--calibration", command.calibrations,
                   "constants that override those in --assumptions; the last of several files wins")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("FILE");
  add_format(verb, command.format, {"table", "json", "csv"});
  verb->add_option("--svg", command.svg, "plot predicted against measured times")->type_name("FILE");
  return verb;
}

CLI::App* add_calibrate(CLI::App& app, CalibrateCommand& command) {
  CLI::App* verb = app.add_subcommand(
      "calibrate", "fit the predictions of a framework on this site to measured runs of it");
  verb->add_option("dataset", command.dataset, "measured runs: a directory, a *.json or a *.jsonl file")
      ->required()
      ->type_name("RUNS");
  verb->add_option("--framework", command.framework, "use only the runs of this framework")
      ->type_name("NAME");
  add_config(verb, command.config);
  add_assumptions(verb, command.assumptions);
  verb->add_flag("!--no-memory", command.memory, "fit times only, not the peak memory");
  add_format(verb, command.format, {"table", "json"});
  verb->add_option("-o,--output", command.output, "write the constants to this file")
      ->type_name("CALIBRATION.json");
  return verb;
}

CLI::App* add_replay(CLI::App& app, ReplayCommand& command) {
  CLI::App* verb =
      app.add_subcommand("replay", "predict the progress of a job while GPUs come and go as in a trace");
  verb->add_option("trace", command.trace, "GPUs or nodes over time (CSV or JSON)")
      ->required()
      ->type_name("TRACE");
  add_source(verb, command.source, "time limit of the search for each set of GPUs (default: the site's)");
  verb->get_option("--cluster")->description("cluster snapshot, for prices, regions and node sizes");
  verb->add_option("--gpu-type", command.gpu_type, "GPU type, if the trace has none")->type_name("TYPE");
  verb->add_option("--zone", command.zone, "zone, if the trace has none")->type_name("ZONE");
  verb->add_option("--gpus-per-node", command.gpus_per_node,
                   "GPUs per node (default: as in --cluster, else 1)")
      ->type_name("N")
      ->check(within(1, 1024));
  verb->add_option("--until", command.until_s, "seconds to replay (default: until the last row of the trace)")
      ->type_name("S")
      ->check(CLI::PositiveNumber);
  verb->add_option("--reconfigure", command.options.reconfigure_s,
                   "seconds that a reconfiguration takes (default: 11.35, from the paper)")
      ->type_name("S")
      ->check(within(0.0, 86400.0));
  verb->add_option("--restart", command.options.restart_s,
                   "seconds until a requeued job trains again (default: 130)")
      ->type_name("S")
      ->check(within(0.0, 86400.0));
  verb->add_option("--checkpoint-every", command.checkpoint_steps,
                   "steps between checkpoints (default: the job's, else the steps of 600 s)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  verb->add_option("--seed", command.seed, "random seed for the choice of lost nodes (default: 1)")
      ->type_name("N");
  verb->add_flag("--events", command.events, "list what the elastic job does at every change");
  add_format(verb, command.format, {"table", "json"});
  return verb;
}

CLI::App* add_report(CLI::App& app, ReportCommand& command) {
  CLI::App* verb = app.add_subcommand(
      "report", "write an HTML page about a run: plan, predicted and measured training, memory, events");
  verb->add_option("run", command.run, "job id, or the run's directory (default: the newest run here)")
      ->type_name("RUN");
  verb->add_option("-o,--out", command.out, "output file (default: report.html in the run's directory)")
      ->type_name("FILE");
  verb->add_option("--cluster", command.cluster,
                   "cluster snapshot to search for other plans (default: the run's own nodes)")
      ->type_name("FILE");
  add_config(verb, command.config);
  return verb;
}

CLI::App* add_cluster(CLI::App& app, ClusterCommand& command) {
  CLI::App* verb = app.add_subcommand("cluster", "show free nodes of the live cluster or of a snapshot");
  verb->add_option("--cluster", command.cluster, "cluster snapshot to show (default: the live cluster)")
      ->type_name("FILE");
  add_config(verb, command.config);
  add_format(verb, command.format, {"table", "yaml"});
  return verb;
}

CLI::App* add_schema(CLI::App& app, SchemaCommand& command) {
  CLI::App* verb = app.add_subcommand("schema", "print the JSON Schema of job specs, for editors");
  add_format(verb, command.format, {"json", "markdown"});
  return verb;
}

CLI::App* add_version(CLI::App& app, VersionCommand& command) {
  CLI::App* verb = app.add_subcommand("version", "show the version, and what it was built from and with");
  verb->add_flag("--full", command.full, "also commit, compiler, flags and libraries of the build");
  verb->add_flag("--json", command.json, "all of it as JSON");
  return verb;
}

std::vector<std::string> all_verbs() {
  std::vector<std::string> verbs = kBuiltIn;
  for (const std::string& verb : external_verbs()) {
    if (std::find(verbs.begin(), verbs.end(), verb) == verbs.end()) verbs.push_back(verb);
  }
  std::sort(verbs.begin(), verbs.end());
  return verbs;
}

// Runs `sailor-VERB` for a verb that is not built in; returns if the first argument is not one.
void try_external(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::string verb = argv[1];
  std::vector<std::string> arguments(argv + 2, argv + argc);
  // Without a file, `sailor cluster` is the program sailor-cluster, which prints the live snapshot as YAML.
  bool live_cluster = verb == "cluster" && arguments.empty();
  if (!live_cluster && std::find(kBuiltIn.begin(), kBuiltIn.end(), verb) != kBuiltIn.end()) return;
  if (std::string path = find_external(verb); !path.empty()) exec_external(path, arguments);
  if (live_cluster) return;
  std::vector<std::string> verbs = all_verbs();
  throw InputError(fmt::format("unknown verb {}{} (verbs: {})", in_quotes(verb), did_you_mean(verb, verbs),
                               fmt::join(verbs, ", ")));
}

int run(int argc, char** argv) {
  try_external(argc, argv);
  CLI::App app("Plans and runs distributed training on clusters of mixed GPU types.", "sailor");
  app.require_subcommand(1);
  app.footer([] {
    return fmt::format(
        "Verbs: {}\nExit codes: 0 done, 1 failed, 2 bad usage or input, 3 no feasible plan, "
        "4 time limit without a plan",
        fmt::join(all_verbs(), ", "));
  });
  CalibrateCommand calibrate_command;
  ExplainCommand explain_command;
  ModelCommand model_command;
  ParetoCommand pareto_command;
  PlanCommand plan_command;
  ReportCommand report_command;
  SimulateCommand simulate_command;
  ValidateCommand validate_command;
  ReplayCommand replay_command;
  SchemaCommand schema_command;
  VersionCommand version_command;
  ClusterCommand cluster_command;
  CLI::App* calibrate_verb = add_calibrate(app, calibrate_command);
  CLI::App* explain_verb = add_explain(app, explain_command);
  CLI::App* model_verb = add_model(app, model_command);
  CLI::App* pareto_verb = add_pareto(app, pareto_command);
  CLI::App* plan_verb = add_plan(app, plan_command);
  CLI::App* replay_verb = add_replay(app, replay_command);
  CLI::App* report_verb = add_report(app, report_command);
  CLI::App* schema_verb = add_schema(app, schema_command);
  CLI::App* simulate_verb = add_simulate(app, simulate_command);
  CLI::App* validate_verb = add_validate(app, validate_command);
  CLI::App* version_verb = add_version(app, version_command);
  add_cluster(app, cluster_command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    std::string verb = app.get_subcommands().empty() ? "" : " " + app.get_subcommands()[0]->get_name();
    throw InputError(fmt::format("{} (see `sailor{} --help`)", usage_error(app, error), verb));
  }
  if (*calibrate_verb) return run_calibrate(calibrate_command);
  if (*explain_verb) return run_explain(explain_command);
  if (*model_verb) return run_model(model_command);
  if (*pareto_verb) return run_pareto(pareto_command);
  if (*plan_verb) return run_plan(plan_command);
  if (*replay_verb) return run_replay(replay_command);
  if (*report_verb) return run_report(report_command);
  if (*schema_verb) return run_schema(schema_command);
  if (*simulate_verb) return run_simulate(simulate_command);
  if (*validate_verb) return run_validate(validate_command);
  if (*version_verb) return run_version(version_command);
  return run_cluster(cluster_command);
}

}  // namespace
}  // namespace sailor::cli

int main(int argc, char** argv) {
  try {
    return sailor::cli::run(argc, argv);
  } catch (const sailor::cli::ExternalFailure& failure) {
    return failure.code();
  } catch (const sailor::InputError& error) {
    sailor::cli::diagnose(error.what());
    return sailor::kBadInput;
  } catch (const std::exception& error) {
    sailor::cli::diagnose(error.what());
    return sailor::kFailed;
  }
}
