#include "trainer/pipeline/emulated_network.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "planner/plan/rank_layout.h"
#include "planner/process/file_descriptor.h"

namespace sailor {
namespace {

// A reservation further ahead than that is left over from before the machine's last start.
constexpr int64_t kStale_ns = int64_t{3600} * 1'000'000'000;

// Approximate length of a turn: short compared with emulated times, long compared with a thread's wake-up.
constexpr double kTurn_s = 2e-3;

std::string node_of(const RankSlot& slot) {
  return slot.node.empty() ? fmt::format("stage-{}-{}", slot.pipeline, slot.stage) : slot.node;
}

// Occupies what is free at `free_at` for `busy_ns`, not before `from_ns`, and returns when that is over. Not
// before the present would be wrong: who wakes up late for a turn would leave the time in between unused.
int64_t reserve(std::atomic<int64_t>& free_at, int64_t from_ns, int64_t busy_ns) {
  int64_t free_ns = free_at.load();
  int64_t end_ns;
  do {
    const int64_t start_ns = free_ns > from_ns + kStale_ns ? from_ns : std::max(from_ns, free_ns);
    end_ns = start_ns + busy_ns;
  } while (!free_at.compare_exchange_weak(free_ns, end_ns));
  return end_ns;
}

}  // namespace

EmulatedNetwork::EmulatedNetwork(const Plan& plan, int rank, const Catalog& catalog,
                                 const NetworkProfile& network, const std::string& directory)
    : rank_(rank) {
  static_assert(FreeAt::is_always_lock_free, "shared between processes");
  const RankLayout layout(plan);
  const RankSlot& own = layout.slots().at(static_cast<size_t>(rank));
  const PlanStage& own_stage = stage_of(plan, own);
  for (const RankSlot& other : layout.slots()) {
    const PlanStage& stage = stage_of(plan, other);
    Link link;
    link.same_node = node_of(own) == node_of(other);
    const bool same_group =
        own.pipeline == other.pipeline && own.stage == other.stage && own.cp_rank == other.cp_rank;
    const bool emulated = catalog.at(own_stage.gpu_type).emulation || catalog.at(stage.gpu_type).emulation;
    const LinkCurve* curve = nullptr;
    if (emulated && !same_group)
      curve = network.find({own_stage.gpu_type, own_stage.zone, 1}, {stage.gpu_type, stage.zone, 1},
                           link.same_node);
    if (curve != nullptr) {
      link.paced = true;
      link.curve = *curve;
    }
    to_.push_back(std::move(link));
  }

  const std::string path = fmt::format("{}/interface-{}", directory, node_of(own));
  const auto fail = [&path](const char* action) {
    throw std::runtime_error(fmt::format("cannot {} {}: {}", action, path, std::strerror(errno)));
  };
  const FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid()) fail("open");
  if (ftruncate(file.get(), sizeof(FreeAt)) != 0) fail("write");  // zeros; does nothing the second time
  void* shared = mmap(nullptr, sizeof(FreeAt), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (shared == MAP_FAILED) fail("map");
  interface_free_at_ = static_cast<FreeAt*>(shared);
}

EmulatedNetwork::~EmulatedNetwork() {
  munmap(interface_free_at_, sizeof(FreeAt));
}

void EmulatedNetwork::take_turn(Passage& passage) {
  if (passage.from != rank_) throw std::logic_error("EmulatedNetwork: a message of another rank");
  // Ranks behind those of the plan only hand their state over: nothing is known of their links.
  const Link link = passage.to < static_cast<int>(to_.size()) ? to_[static_cast<size_t>(passage.to)] : Link();
  if (!link.paced) {
    passage.through = true;
    return;
  }
  const auto size = static_cast<double>(passage.bytes);
  const double latency_s = link.curve.time_s(1);
  const auto busy_s = [&](double senders) {  // one sender's share with this many concurrent senders
    return std::max(0.0, link.curve.time_s(size, senders) - latency_s) / senders;
  };
  constexpr double kMany = 1e6;  // large enough that only the node's rate matters
  const double port_s = busy_s(1), interface_s = link.same_node ? 0 : busy_s(kMany);
  const double turns = std::max(1.0, std::ceil(std::max(port_s, interface_s) / kTurn_s));
  const auto turn_ns = [&](double whole_s) { return static_cast<int64_t>(whole_s / turns * 1e9); };

  const int64_t from_ns = std::chrono::nanoseconds(passage.at.time_since_epoch()).count();
  int64_t end_ns = reserve(link.same_node ? near_port_free_at_ : far_port_free_at_, from_ns, turn_ns(port_s));
  if (!link.same_node) end_ns = std::max(end_ns, reserve(*interface_free_at_, from_ns, turn_ns(interface_s)));
  passage.at = Clock::time_point(std::chrono::nanoseconds(end_ns));
  if (++passage.turns < turns) return;
  passage.through = true;
  passage.leaves = passage.at + std::chrono::nanoseconds(static_cast<int64_t>(latency_s * 1e9));
}

}  // namespace sailor
