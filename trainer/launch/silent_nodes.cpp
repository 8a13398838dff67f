#include "trainer/launch/silent_nodes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <stdexcept>

namespace sailor {
namespace {

constexpr double kPoll_s = 0.1;
constexpr double kAnswer_s = 15;   // a node that is well has answered
constexpr double kAgain_s = 10;    // between two steps on a node
constexpr double kNotice_s = 600;  // twice Slurm's default for SlurmdTimeout
constexpr double kUnresponsive_s = 3600;

struct Probe {
  AllocatedNode node;
  std::optional<StepId> step{};
  double next_s = 0;
};

// Whether the node has answered. Starts a step on it if there is none.
bool answers(Scheduler& scheduler, Probe& probe, double now_s) {
  if (probe.step) {
    const std::optional<int> end = scheduler.step_end(*probe.step);
    if (!end) return false;
    if (*end == 0) return true;
    probe.step.reset();
    probe.next_s = now_s + kAgain_s;
  }
  if (now_s < probe.next_s) return false;
  try {
    probe.step = scheduler.start_step({probe.node, {"true"}, {}});
  } catch (const std::runtime_error&) {  // the job is ending
    probe.next_s = now_s + kAgain_s;
  }
  return false;
}

bool lost(Scheduler& scheduler, const Probe& probe) {
  const std::optional<NodeInfo> node = scheduler.find_node(probe.node.name);
  return node && node->lost();
}

}  // namespace

void wait_for_silent_nodes(Scheduler& scheduler, const std::vector<AllocatedNode>& nodes,
                           const SilentNodesWait& wait) {
  std::vector<Probe> probes;
  for (const AllocatedNode& node : nodes) probes.push_back({node});
  const double begin_s = wait.time.now_s();
  double look_s = begin_s + kNotice_s;
  bool said = false;
  while (!probes.empty() && !wait.told()) {
    const double now_s = wait.time.now_s();
    std::erase_if(probes, [&](Probe& probe) { return answers(scheduler, probe, now_s); });
    if (probes.empty()) break;
    if (!said && wait.say && now_s >= begin_s + kAnswer_s) {
      std::vector<std::string> names;
      for (const Probe& probe : probes) names.push_back(probe.node.name);
      wait.say(fmt::format("{} {} not answer: waiting until the scheduler requeues the job",
                           fmt::join(names, ", "), names.size() == 1 ? "does" : "do"));
      said = true;
    }
    if (now_s >= begin_s + kUnresponsive_s) break;
    if (now_s >= look_s) {
      if (std::none_of(probes.begin(), probes.end(),
                       [&](const Probe& probe) { return lost(scheduler, probe); }))
        break;
      look_s = now_s + kAgain_s;
    }
    wait.time.sleep(kPoll_s);
  }
  for (const Probe& probe : probes)
    if (probe.step) scheduler.signal_step(*probe.step, SIGKILL);
}

}  // namespace sailor
