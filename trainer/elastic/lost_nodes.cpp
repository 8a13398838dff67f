#include "trainer/elastic/lost_nodes.h"

#include <algorithm>

namespace sailor {
namespace {

constexpr double kFirstTry_s = 3;    // after the loss
constexpr double kSeldomTry_s = 60;  // maximum; the delay doubles with each attempt

}  // namespace

void LostNodes::lost(const std::string& node, double now_s) {
  nodes_.try_emplace(node, Node{.next_try_s = now_s + kFirstTry_s, .delay_s = kFirstTry_s});
}

std::vector<std::string> LostNodes::due(double now_s) const {
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) {
    if (node.starting < 0 && now_s >= node.next_try_s) names.push_back(name);
  }
  return names;
}

void LostNodes::starting(const std::string& node, pid_t child) {
  Node& lost = nodes_.at(node);
  lost.starting = child;
  lost.delay_s = std::min(2 * lost.delay_s, kSeldomTry_s);
}

void LostNodes::child_ended(pid_t child, double now_s) {
  for (auto& [name, node] : nodes_) {
    if (node.starting != child) continue;
    node.starting = -1;
    node.next_try_s = now_s + node.delay_s;
  }
}

}  // namespace sailor
