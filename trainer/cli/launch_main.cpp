// `sailor launch -- COMMAND...`: starts a training program of the user's own on the GPUs of the job's plan,
// with the environment of torchrun (rank_environment.h).
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <optional>

#include "planner/cli/program.h"
#include "planner/inputs/carried_plan.h"
#include "planner/plan/node_groups.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/rank_layout.h"
#include "planner/process/program_path.h"
#include "planner/process/subprocess.h"
#include "planner/scheduler/scheduler.h"
#include "planner/spec/framework_style.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/text_file.h"
#include "trainer/launch/agent.h"
#include "trainer/launch/programs.h"

namespace {

namespace fs = std::filesystem;
using namespace sailor;

struct Arguments {
  std::string plan_file;
  std::string order;
  int port = 0;
  bool task = false;
  std::vector<std::string> command;
};

// As the job was submitted; nothing if the file is not seen from here, or the job is for Sailor's own
// trainer.
std::optional<JobSpec> job_of_program(const Scheduler& scheduler) {
  const std::string file = scheduler.carried_value("SAILOR_JOB").value_or("");
  if (file.empty() || !fs::exists(file)) return std::nullopt;
  JobSpec job = load_job_spec(file);
  return job.trainer.own() ? std::nullopt : std::optional(std::move(job));
}

// As asked for, else as the job spec's framework has it.
FrameworkStyle::RankOrder order_of(const Arguments& arguments, const std::optional<JobSpec>& job) {
  if (!arguments.order.empty())
    return arguments.order == FrameworkStyle::kRankOrders[1] ? FrameworkStyle::RankOrder::stages
                                                             : FrameworkStyle::RankOrder::pipelines;
  return job ? framework_of_trainer(*job).rank_order : FrameworkStyle::RankOrder::pipelines;
}

// The controller of an elastic job starts the ranks, now and again.
[[noreturn]] void become_controller(const Arguments& arguments, const JobSpec& job) {
  if (!arguments.order.empty() || arguments.port > 0)
    throw InputError("--rank-order, --master-port: an elastic job chooses them; remove them");
  std::vector<std::string> command = {program_path("sailor-run")};
  if (!arguments.plan_file.empty()) command.insert(command.end(), {"--plan", arguments.plan_file});
  command.insert(command.end(), {job.file, "--"});
  command.insert(command.end(), arguments.command.begin(), arguments.command.end());
  become_program(command);
}

Plan plan_of_job(const Arguments& arguments, const Scheduler& scheduler) {
  if (!arguments.plan_file.empty()) return load_plan(arguments.plan_file);
  if (std::optional<Plan> plan = carried_plan(scheduler)) return *plan;
  throw InputError(
      "this job carries no plan: submit it with --sailor-objective=throughput and --sailor-job=JOB.yaml, "
      "or give --plan FILE");
}

// Slurm may have given the job other nodes of the same kinds.
Plan on_own_nodes(Plan plan, const Allocation& allocation, const Scheduler& scheduler) {
  std::vector<std::string> nodes;
  for (const AllocatedNode& node : allocation.nodes) nodes.push_back(node.name);
  return moved(std::move(plan), moves_to(nodes, carried_node_groups(scheduler)));
}

// The task of srun that this process is, by its number on the node.
int local_task(const Scheduler& scheduler) {
  const std::optional<int> task = scheduler.own_task();
  if (!task) throw InputError("--task: this process is no task of srun");
  return *task;
}

int launch(const Arguments& arguments, Scheduler& scheduler) {
  const std::optional<JobSpec> job = job_of_program(scheduler);
  if (job && job->elastic.enabled && !arguments.task) become_controller(arguments, *job);
  Plan plan = plan_of_job(arguments, scheduler);
  for (const std::string& node : RankLayout(plan).nodes())
    if (node.empty())
      throw InputError("stages are not placed on nodes: use a plan that the Slurm plugin made");
  ProgramLaunch request{plan, order_of(arguments, job), arguments.command, {}, "", arguments.port};
  request.allocation.job_id = own_job_id(scheduler);
  if (arguments.task) {
    request.plan_file = arguments.plan_file;
    become_rank(scheduler, request, node_name(), local_task(scheduler));
  }
  request.allocation = scheduler.own_allocation();
  if (arguments.plan_file.empty()) plan = on_own_nodes(std::move(plan), request.allocation, scheduler);
  const fs::path plan_file = fs::absolute("sailor-" + request.allocation.job_id + ".plan.json");
  if (arguments.plan_file.empty()) write_file_atomically(plan_file, to_json(plan));
  request.plan_file = arguments.plan_file.empty() ? plan_file : fs::absolute(arguments.plan_file);
  if (job) request.grace_s = job->trainer.grace_s;
  request.say = [](const std::string& text) { std::cerr << "sailor: " << text << '\n'; };
  return launch_programs(scheduler, request);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{
      "Starts your own training program on the GPUs of the job's plan, with the environment of torchrun",
      "sailor launch"};
  app.add_option("--plan", arguments.plan_file, "use this plan instead of the job's own")->type_name("FILE");
  app.add_option(
         "--rank-order", arguments.order,
         "number the ranks by `pipelines`, or by `stages` as Megatron does (default: as the job spec's "
         "trainer.kind does)")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(FrameworkStyle::kRankOrders),
                                                     std::end(FrameworkStyle::kRankOrders))));
  app.add_option("--master-port", arguments.port, "port of rank 0 (default: chosen by job)")
      ->check(cli::within(1, 65535));
  app.add_flag("--task", arguments.task,
               "this process is the task of one rank, started by srun: become COMMAND with its environment");
  app.add_option("COMMAND", arguments.command, "program and arguments")->required();
  app.positionals_at_end();
  return cli::run_program(app, argc, argv, [&] { return launch(arguments, site_scheduler()); });
}
