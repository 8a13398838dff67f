// The tasks of a rank in one iteration with their times: the data of a measured trace. Value types.
#pragma once

#include <vector>

namespace sailor {

enum class TaskKind { forward, backward, wait, sync, update, weights };
inline constexpr int kTaskKinds = 6;

// `forward`, `backward`, `wait` (for a neighbour's message), `sync` (of gradients), `update`, `weights` (the
// second part of a split backward).
inline const char* to_string(TaskKind kind) {
  static constexpr const char* kNames[kTaskKinds] = {"forward", "backward", "wait",
                                                     "sync",    "update",   "weights"};
  return kNames[static_cast<int>(kind)];
}

struct TracedTask {
  TaskKind kind = TaskKind::forward;
  int microbatch = -1;  // of the rank's pipeline; -1 = the whole iteration
  double start_s = 0;   // since the epoch, clock of the rank's node
  double end_s = 0;

  bool operator==(const TracedTask&) const = default;
};

}  // namespace sailor
