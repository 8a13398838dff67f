// The decisions of the controller when processes of a job join and end, without its sockets, planner and
// clock.
//
//     joining -> running <-> interrupting -> planning -> starting -> running ... -> ended
//                                               |  ^
//                                               v  |
//                                              waiting
//
// The owner reports losses, answers and the time by calls, in order; take_actions() returns what it must do
// now. A process is a number that the owner chooses. Times are seconds on any monotonic clock. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace sailor {

// One change of generation, from its first reason until training runs again.
struct GenerationChange {
  std::vector<std::string> reasons;
  std::set<int> lost;
  double detected_s = 0;  // first reason
  double idle_s = 0;      // all survivors have left the generation; of the last attempt, like the next ones
  double plan_s = 0;      // duration of planning
  double sent_s = 0;      // the new generation was sent
  double running_s = 0;   // all of its processes have started
  int attempts = 0;       // number of generations sent
};

// Actions for the owner of a Reconfiguration.
struct SendInterrupt {  // to the processes of the generation
  int generation = 0;
  int64_t after_step = 0;
  bool save = false;
};
struct DropProcess {  // tell it to end, and have it killed
  int process = 0;
  std::string why{};
};
struct MakePlan {};  // for the remaining processes; answer with planned() or no_plan()
struct NowRunning {  // every process of the generation has started
  GenerationChange change{};
};
struct EndJob {  // the job cannot continue
  std::string error{};
};
using ReconfigurationAction = std::variant<SendInterrupt, DropProcess, MakePlan, NowRunning, EndJob>;

class Reconfiguration {
 public:
  enum class State { joining, running, interrupting, planning, starting, waiting, ended };

  struct Limits {
    double idle_s = 7;            // for a process to answer an interrupt; longer than a lease
    double suspect_s = 2;         // the same for one that others could not reach
    double step_boundary_s = 30;  // for all to reach the step after which they stop
    double start_s = 120;         // from a new plan until all of its processes train
    double nodes_s = 600;         // maximum wait for processes while no plan is possible
    int fruitless = 3;            // consecutive generations that fail without a loss or a completed step
  };

  explicit Reconfiguration(Limits limits);

  // Generation 1 has these processes; they start without a message, some maybe before this call.
  void begin(const std::vector<int>& processes, double now_s);

  // A process is ready for use.
  void joined(int process, double now_s);
  // A process has ended, or is treated as ended.
  void lost(int process, const std::string& why, double now_s);
  // A process of the generation could not reach `suspect` (-1 = unknown).
  void broken(int process, int generation, const std::string& text, int suspect, double now_s);
  void idle(int process, int generation, double now_s);
  void started(int process, int generation, double now_s);
  // All have completed a step.
  void step_done() { fruitless_ = 0; }
  // Another plan is better than the one in force: change after at least `after_step` steps (0 = at once), at
  // most `within_s` from now.
  void change(const std::string& why, int64_t after_step, bool save, double within_s, double now_s);
  // The answer to MakePlan: the processes of the next generation, those that only send their state to them,
  // and the duration of planning.
  void planned(const std::vector<int>& processes, const std::vector<int>& givers, double plan_s,
               double now_s);
  void no_plan(const std::string& why, double now_s);
  // Call often: checks deadlines.
  void tick(double now_s);

  std::vector<ReconfigurationAction> take_actions();

  State state() const { return state_; }
  double since_s() const { return since_s_; }     // start of the current state
  int generation() const { return generation_; }  // in force, or sent last
  int base() const { return base_; }              // the last one in which training ran
  const std::set<int>& alive() const { return alive_; }
  const std::set<int>& working() const { return working_; }
  // The current change, or the last one.
  const GenerationChange& current() const { return change_; }
  void set_idle_limit(double idle_s) { limits_.idle_s = idle_s; }

 private:
  void begin_change(const std::string& why, double now_s);
  void interrupt(const std::string& why, int64_t after_step, bool save, double within_s, double now_s);
  void drop_who_is_not_idle(bool suspects_only, double now_s);
  void look_whether_all_idle(double now_s);
  void look_whether_all_started(double now_s);
  void make_plan(double now_s);
  void end(const std::string& error);

  Limits limits_;
  State state_ = State::joining;
  int generation_ = 0, base_ = 0;
  std::set<int> alive_, working_, idle_, started_;
  std::set<int> givers_;    // of the working ones, until all have started
  std::set<int> suspects_;  // unreachable for others in the interrupted generation
  double since_s_ = 0;      // start of the state
  double deadline_s_ = 0;   // of an interrupt
  bool orderly_ = false;    // the interrupt is for the end of a step
  bool somebody_lost_ = false;
  int fruitless_ = 0;
  std::string last_trouble_;
  GenerationChange change_;
  std::vector<ReconfigurationAction> actions_;
};

const char* to_string(Reconfiguration::State state);

}  // namespace sailor
