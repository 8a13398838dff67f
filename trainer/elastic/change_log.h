// What a job tells of its generations and of the changes between them: the events about generations
// (etc/doc/formats.md), the lines for people, and how long the last change took. Of a job that is not elastic
// there is nothing to tell: its EventLog keeps nothing. Used from the controller's thread.
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
  // `events` outlives the object; `say` is told lines for people.
  ChangeLog(EventLog& events, std::function<void(const std::string&)> say);

  // Generation 1 is complete. `how`: how the plans after this one are made; `promised_s`: seconds of an
  // iteration, where they are known.
  void begun(const std::string& how, const Plan& plan, std::optional<double> promised_s);
  void interrupted(const SendInterrupt& what, const std::vector<std::string>& reasons);
  // A longer search has ended.
  void searched(const NextPlan::LongerSearch& found);
  // Nothing can be planned; the job waits for that long.
  void no_plan(const std::string& why, double plan_s, double wait_s);
  // A generation with that plan was sent out.
  void sent(int number, const std::vector<std::string>& reasons, const Replanned& made,
            std::optional<double> promised_s, double plan_s);
  // A process of it is ready to train.
  void started(int process, const Started& started) { record_.started(process, started); }
  // All are, the `working` ones of it; training was at `steps_done` before. Returns how many steps the state
  // has behind it that they go on from.
  int64_t running(int number, const GenerationChange& change, const Roster& roster,
                  const std::set<int>& working, int64_t steps_done);
  // A step is done: after a change, the first one is told.
  void step_done(const StepReport& report, double now_s);
  void ended(int generation, const std::string& status, const std::string& error);

  // A change is over, but no step has been done since.
  bool awaits_first_step() const { return change_began_s_.has_value(); }
  // For which training stood still at the last change, or may at the first one.
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
