// A job as its controller sees it: one generation after the other, each a plan, its processes by rank, and a
// name that sets its communicators apart. Learns who has come and who is lost, and carries out what
// Reconfiguration decides: tells ranks, has the next plan made, sends it out.
//
// A job that is not elastic has no next generation, and neither has one whose first is not complete: whatever
// is lost then, the job fails of it, and Supervisor says why. Its parts: Membership knows who belongs to the
// job, NextPlan what it goes on with, Growth takes nodes beyond its own, ChangeLog tells of it.
//
// Used from the controller's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
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
    double nodes_s = 600;  // to wait for processes while no plan is possible
    // How plans are made; nothing: the job is not elastic.
    std::optional<Replanner::Options> replanning{};
    Membership::Options members{};
    Growth::Options growth{};
  };

  // Plans are written to `directory` as plan.json, lines for people to `out`. What is given by reference
  // outlives the object. Of an elastic job `plan` is placed (place_on_imagined_nodes()). Throws InputError.
  Generations(const JobSpec& job, const Plan& plan, Options options, ControlServer& server,
              Supervisor& supervisor, const RunDirectory& directory, std::ostream& out);

  void receive(const std::string& peer, const ControlMessage& message);
  // A child of the controller has ended: a process of its node, or the Slurm step of an agent.
  void child_ended(int64_t pid, int wait_status);
  // It has none any more.
  void no_children() { signs().no_children(); }
  // To be called often.
  void tick();

  // Can another generation follow, now?
  bool goes_on() const { return next_plan_ && reconfiguration_.generation() > 0; }
  // All ranks are to stop in an orderly way and save, because the job is told to go, `within_s` from now.
  // Requires goes_on().
  void stop_and_save(double within_s);
  // All of them have, or cannot any more.
  bool stopped() const;
  // Everybody is told to end: nothing is started or planned any more, and who ends is no loss.
  void close();
  // The last event.
  void log_end(const std::string& status, const std::string& error);

  // In force, or sent out last.
  const Plan& plan() const { return plan_; }

 private:
  using Clock = std::chrono::steady_clock;

  double now_s() const { return std::chrono::duration<double>(Clock::now() - clock_start_).count(); }
  Membership::Owner owner();
  LossSigns& signs();
  void joined(int process);
  void begin_when_complete();
  void about_training(int process, const ControlMessage& message);
  void leaving(const std::string& node, double grace_s);
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
  std::optional<NextPlan> next_plan_;  // of an elastic job
  Reconfiguration reconfiguration_;
  StepWatch steps_;
  const Clock::time_point clock_start_ = Clock::now();

  std::set<int> holders_;               // of state that is not out of date
  std::optional<double> look_again_s_;  // when a better plan may be possible
  bool stopping_ = false;
};

}  // namespace sailor
