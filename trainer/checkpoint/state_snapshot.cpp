#include "trainer/checkpoint/state_snapshot.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "trainer/checkpoint/loss_scale_json.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/spike_json.h"

namespace sailor {
namespace {

constexpr int64_t kCopyBytes = int64_t{4} << 20;  // of one thread at a time
constexpr int64_t kSnapshotAlignment = 64;

void copy(char* to, const void* from, int64_t bytes) {
  const int64_t parts = (bytes + kCopyBytes - 1) / kCopyBytes;
  at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kCopyBytes;
    std::memcpy(to + first, static_cast<const char*>(from) + first,
                static_cast<std::size_t>(std::min(end * kCopyBytes, bytes) - first));
  });
}

int64_t bytes_of(const ShardPiece& piece) {
  return piece.count * stored_element_bytes(piece.dtype);
}

int64_t aligned(int64_t bytes) {
  return (bytes + kSnapshotAlignment - 1) / kSnapshotAlignment * kSnapshotAlignment;
}

}  // namespace

void StateSnapshot::take(const RankState& state, const StateVersion& version) {
  whole_ = false;
  version_ = version;
  optimizer_steps_ = state.optimizer.steps_done();
  loss_scale_ = state.loss_scale();
  spikes_ = state.spikes();
  pieces_ = pieces_to_write(state);
  std::vector<const void*> sources;
  for (const ShardPiece& piece : pieces_) sources.push_back(piece.data);
  Device& device = state.device;
  place_pieces(device);
  device.order(device.compute(), device.copies());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    char* const to = const_cast<char*>(static_cast<const char*>(pieces_[i].data));
    if (device.asynchronous()) {
      device.copy(to, sources[i], static_cast<std::size_t>(bytes_of(pieces_[i])), device.copies());
    } else {
      copy(to, sources[i], bytes_of(pieces_[i]));
    }
  }
  whole_ = !device.asynchronous();
  copying_ = whole_ ? nullptr : &device;
}

void StateSnapshot::wait() {
  if (copying_ == nullptr) return;
  copying_->wait(copying_->copies());
  copying_ = nullptr;
  whole_ = true;
}

// One after the other, in memory that is there for all of them.
void StateSnapshot::place_pieces(Device& device) {
  size_ = 0;
  for (const ShardPiece& piece : pieces_) size_ += aligned(bytes_of(piece));
  if (size_ > capacity_) {
    bytes_.reset();  // never both
    bytes_ = device.host_memory(static_cast<std::size_t>(size_));
    capacity_ = size_;
  }
  char* next = bytes_.get();
  for (ShardPiece& piece : pieces_) {
    piece.data = next;
    next += aligned(bytes_of(piece));
  }
}

std::string StateSnapshot::description() const {
  nlohmann::json pieces = nlohmann::json::array();
  for (const ShardPiece& piece : pieces_)
    pieces.push_back({piece.tensor, piece.dtype, piece.first, piece.count});
  return nlohmann::json{{"steps_done", version_.steps_done},
                        {"lineage", version_.lineage},
                        {"optimizer_steps", optimizer_steps_},
                        {"loss_scale", loss_scale_json<nlohmann::json>(loss_scale_)},
                        {"spikes", spike_json<nlohmann::json>(spikes_)},
                        {"pieces", pieces}}
      .dump();
}

void StateSnapshot::expect(const std::string& description) {
  whole_ = false;
  const nlohmann::json json = nlohmann::json::parse(description);
  version_ = {json.at("steps_done"), json.at("lineage")};
  optimizer_steps_ = json.at("optimizer_steps");
  loss_scale_ = loss_scale_of(json.at("loss_scale"));
  spikes_ = spike_state_of(json.at("spikes"));
  pieces_.clear();
  for (const nlohmann::json& piece : json.at("pieces"))
    pieces_.push_back({piece.at(0), piece.at(1), piece.at(2), piece.at(3)});
  place_pieces(host_device());
}

}  // namespace sailor
