// The generations of a job, in its controller. A generation is a plan, its processes by rank, and a unique
// name for its communicators. Tracks joined and lost processes, and executes the decisions of
// Reconfiguration: sends messages to ranks, makes the next plan and distributes it.
//
// A job that is not elastic has only one generation. It fails when a process is lost, as does an elastic job
// before its first generation is complete; Supervisor gives the reason. Parts: Membership tracks the
// processes of the job, NextPlan makes plans, Growth takes additional nodes, ChangeLog reports.
//
// Used from the controller's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "trainer/control/control_server.h"
#include "trainer/elastic/change_log.h"
#include "trainer/elastic/growth.h"
#include "trainer/elastic/membership.h"
#include "trainer/elastic/next_plan.h"
#include "trainer/elastic/reconfiguration.h"
#include "trainer/elastic/step_watch.h"
#include "trainer/elastic/supervisor.h"
#include "trainer/record/event_log.h"
#include "trainer/record/run_directory.h"

namespace sailor {

class Generations {
 public:
  struct Options {
    double lease_s = 5;
    double nodes_s = 600;  // maximum wait for processes while no plan is possible
    // How plans are made; nothing = the job is not elastic.
    std::optional<Replanner::Options> replanning{};
    Membership::Options members{};
    Growth::Options growth{};
    // Asks the scheduler whether it is ending the whole job. Called when all nodes that have an agent were
    // told to leave.
    std::function<bool()> job_must_end{};
  };

  // Writes plans to `directory` as plan.json, and lines for the user to `out`. References outlive the object.
  // The `plan` of an elastic job is placed (place_on_imagined_nodes()). Throws InputError.
  Generations(const JobSpec& job, const Plan& plan, Options options, ControlServer& server,
              Supervisor& supervisor, const RunDirectory& directory, std::ostream& out);

  void receive(const std::string& peer, const ControlMessage& message);
  // A child of the controller has ended: a process of its node, or the Slurm step of an agent.
  void child_ended(int64_t pid, int wait_status);
  // The controller has no child left.
  void no_children() { signs().no_children(); }
  // Call often.
  void tick();

  // Can another generation follow now?
  bool goes_on() const { return next_plan_ && reconfiguration_.generation() > 0; }
  // Why all of the job must stop: a node of a job that is not elastic leaves, or a node was told so.
  const std::optional<Leaving>& told_to_leave() const { return told_to_leave_; }
  // Makes all ranks stop in an orderly way and save, because the job must end `within_s` from now. During a
  // change of plan they stop when it is complete. Requires that a step has been done.
  void stop_and_save(double within_s);
  // Whether all of them have done so, or no longer can.
  bool stopped() const;
  // All processes are told to end: nothing is started or planned from now on, and ended processes are not
  // losses.
  void close();
  // Writes the last event.
  void log_end(const std::string& status, const std::string& error);

  // Of the plan in force, or predicted for it.
  double longest_step_s() const { return steps_.longest_step_s(); }
  // The plan in force, or the one sent last.
  const Plan& plan() const { return plan_; }

 private:
  using Clock = std::chrono::steady_clock;

  double now_s() const { return std::chrono::duration<double>(Clock::now() - clock_start_).count(); }
  Membership::Owner owner();
  LossSigns& signs();
  void joined(int process);
  void begin_when_complete();
  void about_training(int process, const ControlMessage& message);
  bool begins_again(const Started& begins);
  void leaving(const std::string& node, const Leaving& what);
  void stop_when_running();
  void leave_when_running();
  void look_for_losses();
  void look_for_a_stall();
  bool at_rest() const;
  void look_for_a_better_plan();
  void look_at_a_longer_search();
  void look_for_growth();
  void change_to_a_better_plan(const std::string& why);
  void carry_out();
  void make_plan();
  void send_generation(const Replanned& made, const std::vector<int>& ids, double plan_s);
  std::vector<int> givers_beside(const std::vector<int>& ids) const;
  void now_running(const GenerationChange& change);

  const JobSpec& job_;
  Plan plan_;
  const Options options_;
  ControlServer& server_;
  Supervisor& supervisor_;
  const RunDirectory& directory_;
  std::ostream& out_;
  EventLog events_;
  ChangeLog log_;
  Growth growth_;
  Membership members_;
  std::optional<NextPlan> next_plan_;  // elastic jobs only
  Reconfiguration reconfiguration_;
  StepWatch steps_;
  const Clock::time_point clock_start_ = Clock::now();

  std::set<int> holders_;               // processes with current state
  std::optional<double> look_again_s_;  // time of the next check for a better plan
  bool stopping_ = false;
  bool saving_ = false;  // the ranks were last told to stop after a step and to save
  double stop_by_s_ = 0;
  std::map<std::string, double> leave_by_s_;  // nodes that were told to leave, while the plan may use them
  std::optional<Leaving> told_to_leave_;
};

}  // namespace sailor
