// The processes that are killed: one per rank, over sockets, saving after every step.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sailor::checkpoint_crash {

// The ranks of one job, each a process of this very program. Whatever happens, none outlives the object.
class Victims {
 public:
  // Returns when all of them train. Throws std::runtime_error when one cannot be started.
  Victims(uint64_t seed, int ranks, const std::string& directory);
  ~Victims();
  Victims(const Victims&) = delete;
  Victims& operator=(const Victims&) = delete;

  void kill_all();          // one after the other, without a pause
  void kill_one(int rank);  // and waits for the others to end, which lose it; kills those that do not
  // The newest step that rank 0 has said to be saved; -1 = none yet. After a kill.
  int64_t last_saved();

 private:
  struct Process {
    pid_t pid = -1;
    int to = -1, from = -1;
  };
  std::vector<Process> processes_;
};

// What each of those processes does: goes on from the newest checkpoint, trains to the end. Its pipes are
// descriptors 3 (from the starter) and 4.
int run_victim(uint64_t seed, int rank, const std::string& directory);

}  // namespace sailor::checkpoint_crash
