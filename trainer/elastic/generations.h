// An elastic job's generations, as its controller sees them: learns who is lost and who has come, and carries
// out what Reconfiguration decides: tells ranks, plans again, starts processes again that ended on a healthy
// node, and writes all of it to events.jsonl.
//
// Used from the controller's thread. Until all ranks of generation 1 have joined, a loss is a start that
// failed, and the controller's own business.
#pragma once

#include <sys/types.h>

#include <chrono>
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
#include "trainer/elastic/generation_record.h"
#include "trainer/elastic/growth.h"
#include "trainer/elastic/lost_nodes.h"
#include "trainer/elastic/process_starts.h"
#include "trainer/elastic/reconfiguration.h"
#include "trainer/elastic/replanner.h"
#include "trainer/elastic/roster.h"
#include "trainer/elastic/second_look.h"
#include "trainer/elastic/step_watch.h"
#include "trainer/elastic/supervisor.h"
#include "trainer/record/event_log.h"

namespace sailor {

class Generations {
 public:
  struct Options {
    double lease_s = 5;
    double nodes_s = 600;  // to wait for processes while no plan is possible
    Replanner::Options replanning{};
    std::string node;  // the controller's own: there it does itself what agents do elsewhere
    // Starts a process that joins, on the controller's own node.
    std::function<pid_t(const StartProcess&)> start_process{};
    // Starts an agent on another node of the job, as a child of this process. Empty: there are no agents.
    std::function<pid_t(const std::string& node)> start_agent{};
    Growth::Options growth{};
  };

  // Plans are written to `directory` as plan.json, lines for people to `out`. What is given by reference
  // outlives the object. `plan` is placed (place_on_imagined_nodes()). Throws InputError.
  Generations(const JobSpec& job, const Plan& plan, Options options, ControlServer& server,
              Supervisor& supervisor, const RunDirectory& directory, std::ostream& out);

  void receive(const std::string& peer, const ControlMessage& message);
  // A process of a node has ended; a child of the controller has, that may be the Slurm step of an agent.
  void process_ended(const std::string& node, int64_t pid, int wait_status);
  void child_ended(int64_t pid, int wait_status);
  // Whether all ranks of generation 1 have joined.
  bool begun() const { return reconfiguration_.generation() > 0; }
  // To be called often, once begun().
  void tick();
  // All ranks are to stop in an orderly way and save, because the job is told to go. `within_s` from now.
  void stop_and_save(double within_s);
  // All of them have, or cannot any more.
  bool stopped() const;
  // Everybody is told to end: nothing is started or planned any more, and who ends is no loss.
  void close();
  // The last event.
  void log_end(const std::string& status, const std::string& error);

  const Plan& plan() const { return plan_; }
  // Why the job cannot go on.
  const std::optional<std::string>& error() const { return error_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kUsualChange_s = 5;  // while none has been measured

  double now_s() const { return std::chrono::duration<double>(Clock::now() - clock_start_).count(); }
  void hello(const std::string& peer, const Hello& hello);
  void begin_when_complete();
  void step_reported(const StepReport& report);
  void started(int process, const Started& started);
  void leaving(const std::string& node, double grace_s);
  void lose(int process, const std::string& why, double silent_s);
  void lose_node(const std::string& node, const std::string& why, double silent_s);
  void end_process(int process);
  void restart(const std::string& node, const std::string& place, int gpu);
  void start_process(const StartProcess& what);
  void agent_joined(const std::string& peer, const Hello& hello);
  void start_what_waits();
  void look_for_returned_nodes();
  void look_for_silence();
  void look_for_a_stall();
  void look_for_a_better_plan();
  void look_twice();
  void change_to_a_better_plan(const std::string& why);
  bool others_come();
  void helper_came(const SnapshotNode& node);
  void look_for_growth();
  void give_back(const std::string& node, const std::string& why);
  void carry_out();
  void interrupt(const SendInterrupt& what);
  void make_plan();
  void send_generation(const Replanned& made, const std::vector<int>& ids, const std::vector<int>& givers,
                       double plan_s);
  std::vector<int> givers_beside(const std::vector<int>& ids) const;
  void now_running(const GenerationChange& change);
  std::vector<int> usable() const;
  std::vector<LiveGpu> gpus_of(const std::vector<int>& processes) const;  // in order
  int process_of_rank(int rank) const;
  Replanned plan_for(const std::vector<int>& processes) const;
  std::optional<std::vector<int>> processes_of(const Plan& plan) const;
  void say(const std::string& text);

  const JobSpec& job_;
  Plan plan_;
  std::vector<Plan> runners_up_;   // of the search that it came from, and the plan before it
  std::optional<Replanned> next_;  // what the job is about to change to, if all that it needs is still there
  const Options options_;
  ControlServer& server_;
  Supervisor& supervisor_;
  const RunDirectory& directory_;
  std::ostream& out_;
  EventLog events_;
  Replanner replanner_;
  Growth growth_;
  SecondLook second_look_;
  Roster roster_;
  Reconfiguration reconfiguration_;
  ProcessStarts starts_;
  const Clock::time_point clock_start_ = Clock::now();

  GenerationRecord record_;
  StepWatch steps_;
  LostNodes lost_nodes_;
  int in_vain_ = 0;                        // changes since training was last further than ever
  std::set<int> holders_;                  // of state that is not out of date
  std::optional<double> wait_first_step_;  // since when, in a generation that is new
  double change_s_ = kUsualChange_s;       // for which training stood still at the last change
  std::set<std::string> leaving_;          // nodes
  std::optional<double> look_again_s_;     // when a better plan may be possible
  bool stopping_ = false, closed_ = false;
  std::optional<std::string> error_;
};

}  // namespace sailor
