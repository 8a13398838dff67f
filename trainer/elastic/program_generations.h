// The decisions of the controller of an elastic job that runs another trainer's program, without its sockets,
// planner and clock. Such a program cannot change its plan while it runs: all ranks are told to end, and
// start again under the next plan, from the program's own checkpoint.
//
//     running -> ending -> (settling -> pausing) -> planning -> running ... -> ended
//                                                     |  ^
//                                                     v  |
//                                                    waiting
//
// A rank that fails may be the consequence of a lost node, which is often noticed later: so the loss has time
// to be noticed before the failure counts as the program's own. A program that fails by itself is started
// again as well, after growing pauses, until it has failed too often in a row.
//
// The owner reports what happens by calls, in order; take_actions() returns what it must do now. Times are
// seconds on any monotonic clock. Not thread-safe.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace sailor {

// From the first reason to end the ranks until they run again.
struct ProgramChange {
  std::vector<std::string> reasons;
  double detected_s = 0;  // first reason
  double ended_s = 0;     // no rank was left
  double plan_s = 0;      // duration of planning
  double running_s = 0;   // all nodes have started their ranks
  bool failed = false;    // the program failed by itself
};

// Actions for the owner of a ProgramGenerations.
struct EndRanks {};  // of the generation, on the nodes of running()
struct DropNode {    // it does not end its ranks: treat it as lost
  std::string node;
};
struct PlanRanks {};  // for the nodes that are left; answer with planned() or no_plan()
struct RanksRun {     // on all nodes of the generation
  ProgramChange change;
};
struct EndPrograms {  // the job ends; no rank is left
  int exit_code = 0;
  std::string error;  // empty: all ranks have ended without one
};
using ProgramAction = std::variant<EndRanks, DropNode, PlanRanks, RanksRun, EndPrograms>;

class ProgramGenerations {
 public:
  enum class State { running, ending, settling, pausing, planning, waiting, ended };

  struct Limits {
    double end_s = 60;       // for the ranks of a node to end, killed if need be
    double loss_s = 7;       // after a failure, for a loss to be noticed; longer than a lease
    double nodes_s = 600;    // maximum wait for nodes while no plan is possible
    int restarts = 3;        // in a row, of a program that fails by itself
    double lasting_s = 600;  // a generation that ran so long was no failed start
    double pause_s = 5;      // before the second start in a row; doubles
    double longest_pause_s = 60;
  };

  explicit ProgramGenerations(Limits limits) : limits_(limits) {}

  // Generation 1 is being started on these nodes.
  void begin(std::set<std::string> nodes, double now_s);
  // The nodes of the first plan have not all come: another plan is made for those that have.
  void begin_without(const std::string& why, double now_s);
  // The ranks of the node run, or have all ended. Ignored for other generations.
  void started(const std::string& node, int generation, double now_s);
  void ended(const std::string& node, int generation, int exit_code, double now_s);
  // The program hangs: it has not got further since `progress_s`. A failure of its own.
  void hangs(const std::string& why, double progress_s, double now_s);
  // A node is lost with its ranks. Of no consequence if the generation does not use it.
  void lost(const std::string& node, const std::string& why, double now_s);
  // Another plan is better than the one in force, or a node must be left.
  void change(const std::string& why, double now_s);
  // There are more nodes than before.
  void more_nodes(double now_s);
  // The answer to PlanRanks: the nodes of the next generation, and the duration of planning.
  void planned(std::set<std::string> nodes, double plan_s, double now_s);
  void no_plan(const std::string& why, double now_s);
  // Somebody wants the job to end: no generation follows.
  void stop(const std::string& why, double now_s);
  // Call often: checks deadlines.
  void tick(double now_s);

  std::vector<ProgramAction> take_actions();

  State state() const { return state_; }
  int generation() const { return generation_; }
  // All of its nodes have started their ranks, and none has ended them.
  bool undisturbed() const { return state_ == State::running && starting_.empty() && !somebody_done_; }
  // Nodes of the generation with ranks that have not ended.
  const std::set<std::string>& running() const { return running_; }
  const std::set<std::string>& nodes() const { return nodes_; }
  const ProgramChange& current() const { return change_; }
  // Starts of a program that had failed by itself, in all.
  int restarts() const { return restarts_; }

 private:
  void fail(const std::string& why, double well_until_s, double now_s);
  void end_ranks(const std::string& why, double now_s);
  void node_done(const std::string& node, double now_s);
  void look_whether_all_ended(double now_s);
  void plan(double now_s);
  void fail_or_pause(double now_s);
  void enter(State state, double now_s);
  void finish(int exit_code, const std::string& error);

  const Limits limits_;
  State state_ = State::planning;
  double since_s_ = 0;                     // start of the state
  std::optional<double> waiting_since_s_;  // without a plan
  int generation_ = 0;
  std::set<std::string> nodes_, running_, starting_;
  double running_since_s_ = 0;
  double failed_s_ = 0;           // until then the failed generation ran well
  bool somebody_done_ = false;    // a node of the generation has ended its ranks, without an error
  bool explained_ = false;        // the change has another reason than a failing rank
  std::optional<int> exit_code_;  // of the first rank that failed
  std::string failure_, stop_, last_no_plan_;
  double pause_s_ = 0;
  int in_a_row_ = 0, restarts_ = 0;
  ProgramChange change_;
  std::vector<ProgramAction> actions_;
};

const char* to_string(ProgramGenerations::State state);

}  // namespace sailor
