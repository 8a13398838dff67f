// What the ranks of a generation said when they were ready to train, and who they are: the event `running`.
//
// Remembers the processes of earlier generations, so that it can say whether those that live on are the same
// ones (start time and number of device contexts). Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>

#include "trainer/control/control_message.h"
#include "trainer/elastic/reconfiguration.h"
#include "trainer/elastic/roster.h"

namespace sailor {

class GenerationRecord {
 public:
  // Another generation begins: what was said of the one before is forgotten, its processes are not.
  void begin() { started_.clear(); }
  void started(int process, const Started& started) { started_[process] = started; }

  // What rank 0 said: how far the state is, and where it is from.
  Started first() const;
  // The event's details, once all `working` processes have said that they started. Without the phases of
  // `change` when `number` is 1: then the job began, and nothing was changed. To be called once a generation.
  nlohmann::ordered_json running(int number, const GenerationChange& change, const Roster& roster,
                                 const std::set<int>& working, int64_t steps_lost);

 private:
  struct Identity {
    int64_t start_ticks = 0;
    int device_contexts = 0;

    bool operator==(const Identity&) const = default;
  };
  std::map<int, Started> started_;    // of the present generation
  std::map<int, Identity> known_as_;  // processes, as they were when they started last
};

// Who a process is, in events: node, GPU, pid and start time.
nlohmann::ordered_json identity(const JobProcess& process);
// Seconds as events have them, to a tenth of a millisecond.
double rounded_s(double seconds);

}  // namespace sailor
