#include "trainer/checkpoint/state_transfer.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "trainer/checkpoint/fetch_plan.h"
#include "trainer/comm/exchange_lists.h"
#include "trainer/model/element_types.h"
#include "trainer/parallel/gradient_buffer.h"
#include "trainer/parallel/parameter_place.h"

namespace sailor {
namespace {

constexpr int64_t kMessageBytes = int64_t{4} << 20;  // at most, in one transfer
// Per peer, that are waited for together: the communicator's deadline is for them, not for the whole state.
constexpr int64_t kTogetherBytes = int64_t{64} << 20;

// What a rank needs, and the staging areas of values that it holds in another type than they are updated in.
class Needs {
 public:
  explicit Needs(const RankState& target) : target_(target) {
    const std::map<std::string, ParameterSpec> specs = specs_by_name(target.job, target.layout);
    std::map<std::string, std::size_t> indices;
    for (const auto& [name, spec] : specs) indices.emplace(name, indices.size());
    const auto add = [&](const std::string& name, int64_t first_of_rank, std::size_t tensor,
                         const at::Tensor& memory) {
      const ParameterSpec& spec = specs.at(name);
      const int64_t first = base_of(target.slot, spec) + first_of_rank;
      const int64_t count = std::min(memory.numel(), real_elements(spec) - first);
      if (count > 0)
        ranges_.push_back({indices.at(name), first, count, tensor, static_cast<char*>(memory.data_ptr())});
    };
    for (const HeldValues& part : target.values()) {
      const at::ScalarType exact = gradient_type(part.values.scalar_type());
      const bool staged = exact != part.values.scalar_type();
      if (staged) staged_.push_back({part, staging(part, part.values.options().dtype(exact))});
      add(part.parameter->name, part.first, 0, staged ? staged_.back().exact : part.values);
    }
    const std::vector<OptimizerSlice>& slices = target.optimizer.slices();
    for (std::size_t i = 0; i < slices.size(); ++i) {
      std::size_t tensor = 0;
      for (const OptimizerState& state : target.optimizer.state(i)) {
        if (state.name != kMasterState) add(slices[i].name, slices[i].first, ++tensor, state.tensor);
      }
    }
  }

  const std::vector<NeededRange>& ranges() const { return ranges_; }

  // Everything has arrived.
  void finish(const KnownState& transferred) {
    const std::vector<OptimizerSlice>& slices = target_.optimizer.slices();
    for (const Staged& staged : staged_) {
      staged.part.values.copy_(staged.exact);
      for (std::size_t i = 0; i < slices.size(); ++i) {
        if (!staged.part.cover(slices[i])) continue;
        for (const OptimizerState& state : target_.optimizer.state(i)) {
          if (state.name == kMasterState)
            state.tensor.copy_(staged.exact.narrow(0, slices[i].first - staged.part.first, slices[i].count));
        }
      }
    }
    target_.optimizer.set_steps_done(transferred.optimizer_steps);
    if (target_.loss_scaler) target_.loss_scaler->continue_from(transferred.loss_scale);
    if (target_.spike_guard) target_.spike_guard->continue_from(transferred.spikes);
  }

 private:
  // Values in the type in which they are updated.
  struct Staged {
    HeldValues part;
    at::Tensor exact;
  };

  // Zero where nothing arrives: in rows of padding.
  at::Tensor staging(const HeldValues& part, const at::TensorOptions& options) const {
    const auto scratch = target_.scratch.find(part.parameter->name);
    if (scratch == target_.scratch.end()) return at::zeros({part.values.numel()}, options);
    return scratch->second.view({-1}).zero_();
  }

  const RankState& target_;
  std::vector<NeededRange> ranges_;
  std::vector<Staged> staged_;
};

// The messages between this rank and one peer, as many to be waited for at once as kTogetherBytes are. Those
// from or to the memory of a device go through the host's.
class Messages {
 public:
  Messages(Communicator& world, int peer, ElementType type) : world_(world), peer_(peer), type_(type) {}

  // `memory` is in that of `device`.
  void add(Transfer::Kind kind, Device& device, char* memory, int64_t count) {
    const auto element = static_cast<int64_t>(element_size(type_));
    for (int64_t done = 0, most = kMessageBytes / element; done < count; done += most) {
      const int64_t part = std::min(most, count - done);
      int64_t& bytes = kind == Transfer::Kind::send ? sent_bytes_ : received_bytes_;
      const auto batch = static_cast<std::size_t>(bytes / kTogetherBytes);
      if (batch >= batches_.size()) batches_.resize(batch + 1);
      Batch& of = batches_[batch];
      if (device.asynchronous()) {
        of.device = &device;
        of.staged.push_back({of.transfers.size(), memory + done * element, of.staged_bytes});
        of.staged_bytes += part * element;
      }
      of.transfers.push_back({kind, memory + done * element, static_cast<std::size_t>(part), type_, peer_});
      bytes += part * element;
    }
  }

  void post(std::size_t batch) {
    if (batch >= batches_.size()) return;
    Batch& now = batches_[batch];
    stage(now);
    now.work = world_.exchange(now.transfers);
  }
  void wait(std::size_t batch) {
    if (batch >= batches_.size()) return;
    Batch& now = batches_[batch];
    now.work->wait();
    for (const Staged& staged : now.staged) {
      const Transfer& transfer = now.transfers[staged.transfer];
      if (transfer.kind == Transfer::Kind::recv)
        now.device->copy(staged.memory, transfer.data, transfer.count * element_size(type_),
                         now.device->copies());
    }
    if (now.device) now.device->wait(now.device->copies());
    now.host.reset();
  }
  std::size_t batches() const { return batches_.size(); }
  bool staged() const {
    return std::any_of(batches_.begin(), batches_.end(), [](const Batch& batch) { return batch.device; });
  }
  int64_t received_bytes() const { return received_bytes_; }

 private:
  struct Staged {
    std::size_t transfer;
    char* memory;    // of the device
    int64_t offset;  // in Batch::host
  };
  struct Batch {
    std::vector<Transfer> transfers{};
    Device* device = nullptr;
    std::vector<Staged> staged{};
    int64_t staged_bytes = 0;
    std::shared_ptr<char> host{};
    std::unique_ptr<Work> work{};  // last: destroyed before its buffers
  };

  void stage(Batch& batch) const {
    if (!batch.device) return;
    batch.host = batch.device->host_memory(static_cast<std::size_t>(batch.staged_bytes));
    for (const Staged& staged : batch.staged) {
      Transfer& transfer = batch.transfers[staged.transfer];
      transfer.data = batch.host.get() + staged.offset;
      if (transfer.kind == Transfer::Kind::send)
        batch.device->copy(transfer.data, staged.memory, transfer.count * element_size(type_),
                           batch.device->copies());
    }
    batch.device->wait(batch.device->copies());
  }

  Communicator& world_;
  const int peer_;
  const ElementType type_;
  std::vector<Batch> batches_;
  int64_t sent_bytes_ = 0, received_bytes_ = 0;
};

char* memory_of(const std::vector<HeldState>& held, std::size_t state, std::size_t range, std::size_t tensor,
                int64_t offset, int64_t element_bytes) {
  return const_cast<char*>(held.at(state).ranges.at(range).tensors.at(tensor)) + offset * element_bytes;
}

// Brings everything into the memory of the fetches, which is that of `device`. Returns the bytes that came
// from other ranks.
int64_t fetch(Communicator& world, const std::vector<HeldState>& held, const std::vector<Fetch>& fetches,
              Device& device, ElementType type) {
  const auto element = static_cast<int64_t>(element_size(type));
  std::vector<NumberList> wanted(static_cast<std::size_t>(world.size()));
  for (const Fetch& f : fetches) {
    NumberList& list = wanted[static_cast<std::size_t>(f.rank)];
    if (f.rank != world.rank())
      list.insert(list.end(), {static_cast<int64_t>(f.state), static_cast<int64_t>(f.range),
                               static_cast<int64_t>(f.tensor), f.offset, f.count});
  }
  const std::vector<NumberList> asked = exchange_lists(world, wanted);
  std::vector<Messages> messages;
  for (int peer = 0; peer < world.size(); ++peer) {
    Messages& with_peer = messages.emplace_back(world, peer, type);
    const NumberList& list = asked[static_cast<std::size_t>(peer)];
    for (auto next = list.begin(); next != list.end(); next += 5)
      with_peer.add(Transfer::Kind::send, *held.at(static_cast<std::size_t>(next[0])).device,
                    memory_of(held, static_cast<std::size_t>(next[0]), static_cast<std::size_t>(next[1]),
                              static_cast<std::size_t>(next[2]), next[3], element),
                    next[4]);
  }
  for (const Fetch& f : fetches) {
    if (f.rank != world.rank())
      messages[static_cast<std::size_t>(f.rank)].add(Transfer::Kind::recv, device, f.memory, f.count);
  }
  std::size_t batches = 0;
  for (const Messages& with_peer : messages) batches = std::max(batches, with_peer.batches());
  // All at once where that takes no memory; else a batch at a time. Both sides cut them alike.
  const bool staged =
      std::any_of(messages.begin(), messages.end(), [](const Messages& m) { return m.staged(); });
  const auto post = [&](std::size_t batch) {
    for (Messages& with_peer : messages) with_peer.post(batch);
  };
  for (std::size_t batch = 0; batch < batches && !staged; ++batch) post(batch);
  for (const Fetch& f : fetches) {
    if (f.rank == world.rank())
      device.copy(f.memory, memory_of(held, f.state, f.range, f.tensor, f.offset, element),
                  static_cast<std::size_t>(f.count * element), device.copies());
  }
  int64_t received = 0;
  for (std::size_t batch = 0; batch < batches; ++batch) {
    if (staged) post(batch);
    for (Messages& with_peer : messages) with_peer.wait(batch);
  }
  for (const Messages& with_peer : messages) received += with_peer.received_bytes();
  return received;
}

}  // namespace

std::optional<TransferredState> transfer_state(Communicator& world, const std::vector<HeldState>& held,
                                               const RankState* target, Precision precision) {
  const at::NoGradGuard no_graph;
  const std::vector<KnownState> known = heard(all_gather_lists(world, told(held)));
  const std::vector<StateChoice> choices = choices_of(known);
  if (choices.empty()) return std::nullopt;
  std::optional<Needs> needs;
  if (target) needs.emplace(*target);
  NumberList lacking;
  for (const StateChoice& choice : choices)
    lacking.push_back(needs ? missing(needs->ranges(), ranges_of(known, choice)) : 0);
  world.all_reduce(lacking.data(), lacking.size(), ElementType::i64, ReduceOp::sum);
  const auto whole = std::find(lacking.begin(), lacking.end(), 0);
  if (whole == lacking.end()) return std::nullopt;
  const StateChoice& choice = choices[static_cast<std::size_t>(whole - lacking.begin())];

  const RangesByParameter ranges = ranges_of(known, choice);
  const at::ScalarType exact = gradient_type(scalar_type(precision));
  const ElementType type = element_type(exact);
  std::vector<Fetch> fetches;
  if (needs)
    fetches = plan_fetches(target->layout, target->slot.rank, static_cast<int64_t>(element_size(type)),
                           needs->ranges(), ranges);
  TransferredState transferred{.version = choice.version, .from_copies = choice.with_copies};
  // What was computed last is what is given, and what is about to be filled has been cleared before.
  Device& device = target ? target->device : host_device();
  for (const HeldState& state : held) state.device->order(state.device->compute(), state.device->copies());
  device.order(device.compute(), device.copies());
  transferred.bytes_received = fetch(world, held, fetches, device, type);
  device.order(device.copies(), device.compute());
  const auto chosen =
      std::find_if(known.begin(), known.end(), [&](const KnownState& state) { return choice.admits(state); });
  if (needs) needs->finish(*chosen);
  return transferred;
}

}  // namespace sailor
