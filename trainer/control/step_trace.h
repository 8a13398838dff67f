// What a rank did in one iteration, and when: the material of a trace of what really happened. Value types.
#pragma once

#include <vector>

namespace sailor {

enum class TaskKind { forward, backward, wait, sync, update };
inline constexpr int kTaskKinds = 5;

// `forward`, `backward`, `wait` (for a neighbour's message), `sync` (of gradients), `update`.
inline const char* to_string(TaskKind kind) {
  static constexpr const char* kNames[kTaskKinds] = {"forward", "backward", "wait", "sync", "update"};
  return kNames[static_cast<int>(kind)];
}

struct TracedTask {
  TaskKind kind = TaskKind::forward;
  int microbatch = -1;  // of the rank's pipeline; -1 = of the iteration
  double start_s = 0;   // since the epoch, by the clock of the rank's node
  double end_s = 0;

  bool operator==(const TracedTask&) const = default;
};

}  // namespace sailor
