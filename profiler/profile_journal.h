// The rounds of a layer profile that is not complete yet, in a file beside it: a line is appended after every
// round of a cell, so that a run that was interrupted (killed, out of disk) is continued by the next one. A
// line that was cut off in the middle is ignored. One writer at a time.
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

  // Of the profile at `profile_path`. What an earlier run left is kept when it measured with `equipment` and
  // as many ranks; else it is dropped. Throws std::runtime_error.
  ProfileJournal(const std::string& profile_path, const MeasuredWith& equipment);

  const Rounds& rounds() const { return rounds_; }
  // Appends, and waits until it is on the disk. Throws std::runtime_error.
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
