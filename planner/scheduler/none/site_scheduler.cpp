// The site's scheduler of a build that has none.
#include <stdexcept>

#include "planner/scheduler/scheduler.h"

namespace sailor {
namespace {

class NoScheduler final : public Scheduler {
 public:
  std::optional<OwnJob> own_job() const override { return std::nullopt; }
  std::string own_node() const override { return ""; }
  std::optional<int> own_task() const override { return std::nullopt; }
  std::optional<std::string> carried_value(const std::string&) const override { return std::nullopt; }
  void forget_carried_value(const std::string&) override {}
  Allocation own_allocation() override { refuse(); }
  void forget_step_defaults() override {}
  void forget_own_job() override {}

  std::vector<NodeInfo> nodes() override { refuse(); }
  std::vector<QueuedJob> queue() override { refuse(); }
  std::optional<NodeInfo> find_node(const std::string&) override { return std::nullopt; }
  std::optional<QueuedJob> find_job(const std::string&) override { return std::nullopt; }
  std::optional<int64_t> could_start(const JobRequest&) override { refuse(); }

  std::string submit(const JobRequest&) override { refuse(); }
  std::string submit_next_part(const std::string&) override { refuse(); }
  std::string submit_helper(const HelperRequest&) override { refuse(); }
  void give_back(const std::string&) override {}
  void give_back_helpers(const std::string&) override {}
  void forget_node_names(const std::string&) override {}
  void requeue(const std::string&) override {}

  StepId start_step(const StepSpec&) override { refuse(); }
  StepId start_program(const NodeProgram&) override { refuse(); }
  std::optional<int> step_end(StepId) override { return std::nullopt; }
  void signal_step(StepId, int) override {}
  std::vector<std::string> step_command(const StepSpec&) override { refuse(); }
  std::vector<std::string> job_command(const std::string&, const std::vector<JobPart>&,
                                       const std::vector<std::string>&) override {
    refuse();
  }

 private:
  [[noreturn]] static void refuse() {
    throw std::runtime_error(
        "this was built without a scheduler: train on this machine with `sailor run --local`");
  }
};

}  // namespace

Scheduler& site_scheduler() {
  static NoScheduler none;
  return none;
}

}  // namespace sailor
