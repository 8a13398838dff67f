#include "trainer/pipeline/emulated_network.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "planner/plan/rank_layout.h"
#include "trainer/comm/file_descriptor.h"

namespace sailor {
namespace {

// A reservation further ahead than that is left over from before the machine's last start.
constexpr int64_t kStale_ns = int64_t{3600} * 1'000'000'000;

const PlanStage& stage_of(const Plan& plan, const RankSlot& slot) {
  return plan.pipelines[static_cast<size_t>(slot.pipeline)].stages[static_cast<size_t>(slot.stage)];
}

std::string node_of(const RankSlot& slot) {
  return slot.node.empty() ? fmt::format("stage-{}-{}", slot.pipeline, slot.stage) : slot.node;
}

// Occupies what is free at `free_at` for `busy_ns`, and returns when that is over.
int64_t reserve(std::atomic<int64_t>& free_at, int64_t now_ns, int64_t busy_ns) {
  int64_t free_ns = free_at.load();
  int64_t end_ns;
  do {
    const int64_t start_ns = free_ns > now_ns + kStale_ns ? now_ns : std::max(now_ns, free_ns);
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
    const bool same_group = own.pipeline == other.pipeline && own.stage == other.stage;
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

EmulatedNetwork::Clock::time_point EmulatedNetwork::departure(int from, int to, std::size_t bytes) {
  if (from != rank_) throw std::logic_error("EmulatedNetwork: a message of another rank");
  const Link& link = to_.at(static_cast<size_t>(to));
  if (!link.paced) return {};
  const auto size = static_cast<double>(bytes);
  const double latency_s = link.curve.time_s(1);
  const auto busy_ns = [&](double senders) {  // one sender's share, when so many send at once
    return static_cast<int64_t>(std::max(0.0, link.curve.time_s(size, senders) - latency_s) / senders * 1e9);
  };
  const int64_t now_ns = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
  int64_t gone_ns = reserve(link.same_node ? near_port_free_at_ : far_port_free_at_, now_ns, busy_ns(1));
  constexpr double kMany = 1e6;  // so many that only the node's rate matters
  if (!link.same_node) gone_ns = std::max(gone_ns, reserve(*interface_free_at_, now_ns, busy_ns(kMany)));
  return Clock::time_point(std::chrono::nanoseconds(gone_ns + static_cast<int64_t>(latency_s * 1e9)));
}

}  // namespace sailor
