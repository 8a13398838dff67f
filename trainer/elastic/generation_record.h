// Collects the Started messages of a generation's ranks for the event `running`.
//
// Remembers the processes of earlier generations, to verify that survivors are the same processes (start time
// and number of device contexts). Not thread-safe.
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
  // A new generation begins: forgets the messages of the previous one, but not its processes.
  void begin() { started_.clear(); }
  void started(int process, const Started& started) { started_[process] = started; }

  // The message of rank 0: progress and origin of the state.
  Started first() const;
  // The details of the event, when all `working` processes have started. Generation 1 has no phases of a
  // `change`, because the job began with it. Call once per generation.
  nlohmann::ordered_json running(int number, const GenerationChange& change, const Roster& roster,
                                 const std::set<int>& working, int64_t steps_lost);

 private:
  struct Identity {
    int64_t start_ticks = 0;
    int device_contexts = 0;

    bool operator==(const Identity&) const = default;
  };
  std::map<int, Started> started_;    // of the current generation
  std::map<int, Identity> known_as_;  // by process, as of its last start
};

// The identity of a process in events: node, GPU, pid and start time.
nlohmann::ordered_json identity(const JobProcess& process);
// Seconds with the precision of events, 0.1 ms.
double rounded_s(double seconds);

}  // namespace sailor
