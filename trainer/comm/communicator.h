// The trainer's data plane: collectives and point-to-point messages among a fixed group of ranks.
//
//     auto tp = factory.create("tp/0.1", {4, 5});     // every member calls it, in one global order
//     tp->all_reduce(grad, n, ElementType::f32, ReduceOp::sum);
//     auto sent = tp->send(out, n, ElementType::f32, 1);      // `out` lives until sent->wait() has returned
//
// Buffers are raw pointers in the memory of the plane (host memory for `thread` and `socket`, the device's
// for `nccl`). `stream` is the device stream to order the operation on; planes in host memory ignore it.
// Collectives return when their result is there; with a stream, when they are enqueued on it. Messages
// between two ranks arrive in the order in which they were posted; there are no tags.
//
// Failure semantics are NCCL's: a communicator on which an operation failed stays failed (every later call
// throws), members that wait for this rank fail too, and recovery means destroying it and creating another. A
// peer that left in an orderly way is an error only for operations that still need it.
//
// Thread-safety: one thread at a time uses a communicator, but threads of a rank may use different ones
// concurrently, so that one can wait for a reduction while another computes. Only abort() may be called from
// any thread at any time.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/comm/link_pacer.h"

namespace sailor {

enum class ElementType { f32, f64, bf16, f16, i64, u8 };
enum class ReduceOp { sum, max };
using Stream = void*;

std::size_t element_size(ElementType type);
const char* to_string(ElementType type);

// A communication that cannot complete: a peer died, a deadline passed, the communicator was aborted.
class CommError : public std::runtime_error {
 public:
  // `peer` is a rank of the job, -1 if no single peer is to blame; `host` is where that peer runs.
  CommError(const std::string& operation, const std::string& communicator, int peer, const std::string& host,
            const std::string& reason);

  const std::string& operation() const { return operation_; }
  int peer() const { return peer_; }
  const std::string& host() const { return host_; }
  const std::string& reason() const { return reason_; }  // what() without the rest

 private:
  std::string operation_;
  int peer_;
  std::string host_;
  std::string reason_;
};

// Handle of operations in flight. Their buffers must live until wait() has returned or thrown, or the
// communicator was destroyed. A handle must not outlive its communicator.
class Work {
 public:
  virtual ~Work() = default;
  // Blocks until all of them completed. Throws CommError. A second call does nothing.
  virtual void wait() = 0;
  // Would wait() return at once? False after a failure, which wait() throws.
  virtual bool done() = 0;
  // Makes later operations on `stream` wait for them; the caller continues, and may drop the handle. Planes
  // in host memory have no streams: they wait().
  virtual void wait_on(Stream stream) {
    static_cast<void>(stream);
    wait();
  }
};

// One message of an exchange(). `peer` is a rank within the communicator.
struct Transfer {
  enum class Kind { send, recv };
  Kind kind = Kind::send;
  void* data = nullptr;  // not written if kind is send
  std::size_t count = 0;
  ElementType type = ElementType::u8;
  int peer = 0;
};

// Elements [first, first + count) of a buffer that is divided among the members of a group.
struct BlockRange {
  std::size_t first = 0;
  std::size_t count = 0;
};
// Rank `rank`'s share of `count` elements: equal for all, or fewer at the end.
BlockRange block_of(std::size_t count, int size, int rank);

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const std::string& name() const { return name_; }
  int rank() const { return rank_; }  // of the caller, within this communicator
  int size() const { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks() const {
    return ranks_;
  }  // ranks of the job, by rank within this communicator

  // In place. Reductions run in rank order, with fp32 accumulation for bf16 and f16, so that the result has
  // the same bits on every member and in every run (`nccl`: the same on every member; order and rounding are
  // NCCL's). sum and max for every element type.
  virtual void all_reduce(void* data, std::size_t count, ElementType type, ReduceOp op,
                          Stream stream = nullptr) = 0;
  // `in` holds size() blocks of `count`; `out` receives the reduction of block rank(). `out` may be that
  // block of `in`.
  virtual void reduce_scatter(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                              Stream stream = nullptr) = 0;
  // `out` holds size() blocks of `count`; `in` may be block rank() of `out`.
  virtual void all_gather(const void* in, void* out, std::size_t count, ElementType type,
                          Stream stream = nullptr) = 0;
  // The two halves of an all-reduce, in place, for any `count`: after the first, every member has the
  // reduction of its block_of() the data and the rest unchanged; after the second, all blocks. Bitwise equal
  // to all_reduce().
  virtual void reduce_own_block(void* data, std::size_t count, ElementType type, ReduceOp op,
                                Stream stream = nullptr) = 0;
  virtual void gather_blocks(void* data, std::size_t count, ElementType type, Stream stream = nullptr) = 0;
  virtual void broadcast(void* data, std::size_t count, ElementType type, int root,
                         Stream stream = nullptr) = 0;
  // Returns when every member has called it.
  virtual void barrier();

  // Posts all messages concurrently (one NCCL group): no order among messages to different peers is implied,
  // so exchanges cannot deadlock. Returns at once. The messages start after what was enqueued on `stream`
  // before, and do not block it: use Work::wait_on().
  virtual std::unique_ptr<Work> exchange(std::span<const Transfer> transfers, Stream stream = nullptr) = 0;
  std::unique_ptr<Work> send(const void* data, std::size_t count, ElementType type, int peer,
                             Stream stream = nullptr);
  std::unique_ptr<Work> recv(void* data, std::size_t count, ElementType type, int peer,
                             Stream stream = nullptr);

  // Returns when everything that was enqueued before is complete (immediately on planes in host memory).
  // Throws CommError, after which no result since the last settle() may be used: what a device computed from
  // an aborted communication is garbage, and there is no other indication.
  virtual void settle() {}

  // Makes every current and later operation throw CommError, here at once and on the peers as soon as they
  // need this rank.
  virtual void abort() noexcept = 0;

 protected:
  Communicator(std::string name, int rank, std::vector<int> ranks);

 private:
  std::string name_;
  int rank_;
  std::vector<int> ranks_;
};

struct CommOptions {
  // An operation that waits longer than this throws CommError naming the ranks that it waits for. It must be
  // longer than the longest computation of a healthy peer between two messages.
  std::chrono::milliseconds deadline = std::chrono::minutes(10);
  // For an emulated network, on the `socket` plane; nullptr = full speed. Outlives the communicators.
  LinkPacer* links = nullptr;
  // On the `socket` plane: what is sent is encrypted and authenticated. The same on all ranks.
  bool encrypt = false;
};

// What a communicator is used for, the same on all members. Planes may save resources that others need.
enum class CommUse {
  any,
  collectives,             // no messages
  background_collectives,  // and while the device computes, which they slow down as little as possible
  layer_messages,  // messages that layers wait for; an emulated network leaves their time to the emulated
                   // device
};
inline bool has_messages(CommUse use) {
  return use == CommUse::any || use == CommUse::layer_messages;
}

// Creates the communicators of one rank. Every member of `ranks` calls create() with the same name and list;
// other ranks do not; all ranks create the communicators that they share in the same order. A name is used
// only once per factory.
class CommFactory {
 public:
  virtual ~CommFactory() = default;

  virtual int rank() const = 0;  // of the job
  virtual int size() const = 0;
  // `ranks` includes rank(); its order gives the ranks within the communicator. Blocks until all members
  // joined; throws CommError. The factory must outlive its communicators.
  std::unique_ptr<Communicator> create(const std::string& name, const std::vector<int>& ranks,
                                       CommUse use = CommUse::any) {
    return make(name, ranks, use);
  }
  // Aborts every communicator of this rank, including those being created; create() throws from then on. From
  // any thread.
  virtual void abort() noexcept = 0;

 protected:
  virtual std::unique_ptr<Communicator> make(const std::string& name, const std::vector<int>& ranks,
                                             CommUse use) = 0;
};

}  // namespace sailor
