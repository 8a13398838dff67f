// Reports the generations of a job and the changes between them: events (etc/doc/formats.md), lines for the
// user, and the duration of the last change. The EventLog of a job that is not elastic discards events. Used
// from the controller's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "trainer/control/control_message.h"
#include "trainer/elastic/generation_record.h"
#include "trainer/elastic/next_plan.h"
#include "trainer/elastic/reconfiguration.h"
#include "trainer/elastic/roster.h"
#include "trainer/record/event_log.h"

namespace sailor {

class ChangeLog {
 public:
  // `events` outlives the object; `say` gets lines for the user.
  ChangeLog(EventLog& events, std::function<void(const std::string&)> say);

  // Generation 1 is complete. `how`: how later plans are made. `promised_s`: predicted seconds per iteration,
  // if known.
  void begun(const std::string& how, const Plan& plan, std::optional<double> promised_s);
  void interrupted(const SendInterrupt& what, const std::vector<std::string>& reasons);
  // A longer search has ended.
  void searched(const NextPlan::LongerSearch& found);
  // No plan is possible; the job waits for up to `wait_s`.
  void no_plan(const std::string& why, double plan_s, double wait_s);
  // The generation was sent to its processes.
  void sent(int number, const std::vector<std::string>& reasons, const Replanned& made,
            std::optional<double> promised_s, double plan_s, size_t dropping);
  // A process of the generation is ready to train.
  void started(int process, const Started& started) { record_.started(process, started); }
  // All `working` processes are ready. `steps_done`: progress before the change. Returns the number of steps
  // in the state that they continue from.
  int64_t running(int number, const GenerationChange& change, const Roster& roster,
                  const std::set<int>& working, int64_t steps_done);
  // A step is done. Reports the first one after a change.
  void step_done(const StepReport& report, double now_s);
  void ended(int generation, const std::string& status, const std::string& error);

  // The first step after a change is still missing.
  bool awaits_first_step() const { return change_began_s_.has_value(); }
  // Downtime of training in the last change, or an estimate before the first one.
  double change_s() const { return change_s_; }

 private:
  static constexpr double kUsualChange_s = 5;

  EventLog& events_;
  const std::function<void(const std::string&)> say_;
  GenerationRecord record_;
  std::optional<double> change_began_s_;  // until its first step is done
  double change_s_ = kUsualChange_s;
};

}  // namespace sailor
