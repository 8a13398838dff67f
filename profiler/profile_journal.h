// The rounds of an incomplete layer profile, in a file next to it: a line is appended after every round of a
// cell, so that the next run continues one that was interrupted (killed, out of disk). A truncated line is
// ignored. One writer at a time.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/profile/measured_with.h"
#include "profiler/stack_bench.h"

namespace sailor {

class ProfileJournal {
 public:
  using Rounds = std::map<std::pair<int, int>, std::vector<StackBench::ByKind>>;  // by (TP, microbatch)

  // The journal of the profile at `profile_path`. Lines of an earlier run are kept if it used the same
  // `equipment` and number of ranks, and measured as many kinds of layers; otherwise they are dropped. Throws
  // std::runtime_error.
  ProfileJournal(const std::string& profile_path, const MeasuredWith& equipment, size_t kinds);

  const Rounds& rounds() const { return rounds_; }
  // Appends, and syncs to disk. Throws std::runtime_error.
  void add(int tp, int microbatch, const StackBench::ByKind& measured);
  // The profile is complete: removes the file.
  void finish();

  static std::string path_of(const std::string& profile_path);

 private:
  void append(const std::string& line);

  std::string path_;
  Rounds rounds_;
};

}  // namespace sailor
