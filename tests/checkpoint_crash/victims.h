// The processes that are killed: one per rank, over sockets, saving after every step.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sailor::checkpoint_crash {

// The ranks of a job, each a process of this program. None outlives the object in any case.
class Victims {
 public:
  // Returns when all of them train. Throws std::runtime_error when one cannot be started.
  Victims(uint64_t seed, int ranks, const std::string& directory);
  ~Victims();
  Victims(const Victims&) = delete;
  Victims& operator=(const Victims&) = delete;

  void kill_all();          // one after the other, without a pause
  void kill_one(int rank);  // and waits until the others end because of the loss; kills those that do not
  // The newest step that rank 0 reported as saved; -1 = none. Call it after a kill.
  int64_t last_saved();

 private:
  struct Process {
    pid_t pid = -1;
    int to = -1, from = -1;
  };
  std::vector<Process> processes_;
};

// The main function of these processes: resumes from the newest checkpoint, trains to the end. Its pipes are
// descriptors 3 (from the starter) and 4.
int run_victim(uint64_t seed, int rank, const std::string& directory);

}  // namespace sailor::checkpoint_crash
