// What a job does when its processes come and go: the decisions of the controller, without its sockets,
// planner and clock.
//
//     joining -> running <-> interrupting -> planning -> starting -> running ... -> ended
//                                               |  ^
//                                               v  |
//                                              waiting
//
// Losses, answers and the time go in as calls, in order; take_actions() says what is to be done now. A
// process is a number that the owner chose. Times are seconds on any clock that does not go back. Not
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

// One change of generation: from its first reason until training runs again.
struct GenerationChange {
  std::vector<std::string> reasons;
  std::set<int> lost;
  double detected_s = 0;  // first reason
  double idle_s = 0;      // all that are left have left the generation; of the last attempt, as the next
  double plan_s = 0;      // time that planning took
  double sent_s = 0;      // the new generation was sent out
  double running_s = 0;   // all of its processes have started
  int attempts = 0;       // generations that were sent out
};

// To be done by the owner of a Reconfiguration.
struct SendInterrupt {  // to the processes of the generation
  int generation = 0;
  int64_t after_step = 0;
  bool save = false;
};
struct DropProcess {  // it is out of the job: tell it to end, and have it killed
  int process = 0;
  std::string why{};
};
struct MakePlan {};  // for the processes that are left; answer with planned() or no_plan()
struct NowRunning {  // every process of the generation has started
  GenerationChange change{};
};
struct EndJob {  // it cannot go on
  std::string error{};
};
using ReconfigurationAction = std::variant<SendInterrupt, DropProcess, MakePlan, NowRunning, EndJob>;

class Reconfiguration {
 public:
  enum class State { joining, running, interrupting, planning, starting, waiting, ended };

  struct Limits {
    double idle_s = 7;            // for a process to answer an interrupt; longer than a lease
    double suspect_s = 2;         // the same for one that others could not reach any more
    double step_boundary_s = 30;  // for all to reach the step after which they were to stop
    double start_s = 120;         // from a new plan until all of its processes train
    double nodes_s = 600;         // to wait for processes while no plan is possible
    int fruitless = 3;            // generations in a row that fail with nobody lost and no step done
  };

  explicit Reconfiguration(Limits limits);

  // Generation 1 has these processes; they start by themselves.
  void begin(const std::vector<int>& processes, double now_s);

  // A process is ready to be used.
  void joined(int process, double now_s);
  // A process has ended, or is to be treated so.
  void lost(int process, const std::string& why, double now_s);
  // A process of the generation could not reach another one, `suspect` (-1 = none in particular).
  void broken(int process, int generation, const std::string& text, int suspect, double now_s);
  void idle(int process, int generation, double now_s);
  void started(int process, int generation, double now_s);
  // A step was done by all.
  void step_done() { fruitless_ = 0; }
  // Another plan is better than the one in force: change when `after_step` steps are done (0 = at once), and
  // not later than `within_s` from now.
  void change(const std::string& why, int64_t after_step, bool save, double within_s, double now_s);
  // The answer to MakePlan: the processes of the next generation, those that only hand their state over to
  // them, and how long it took to choose.
  void planned(const std::vector<int>& processes, const std::vector<int>& givers, double plan_s,
               double now_s);
  void no_plan(const std::string& why, double now_s);
  // To be called often: deadlines are looked at here.
  void tick(double now_s);

  std::vector<ReconfigurationAction> take_actions();

  State state() const { return state_; }
  double since_s() const { return since_s_; }     // it is in this state
  int generation() const { return generation_; }  // in force, or sent out last
  int base() const { return base_; }              // the last one in which training ran
  const std::set<int>& alive() const { return alive_; }
  const std::set<int>& working() const { return working_; }
  // The change that is going on, or the last one.
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
  std::set<int> suspects_;  // that others could not reach in the generation that is interrupted
  double since_s_ = 0;      // of the state
  double deadline_s_ = 0;   // of an interrupt
  bool orderly_ = false;    // the interrupt is for a step's end
  bool somebody_lost_ = false;
  int fruitless_ = 0;
  std::string last_trouble_;
  GenerationChange change_;
  std::vector<ReconfigurationAction> actions_;
};

const char* to_string(Reconfiguration::State state);

}  // namespace sailor
