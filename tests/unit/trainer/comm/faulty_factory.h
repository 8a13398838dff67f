// Simulates the loss of a rank: its factory lets a chosen operation fail like that of a killed process, or
// like a lost message.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/comm/communicator.h"

namespace sailor {

struct Fault {
  enum class Kind {
    dies_before,  // before the operation; nothing of this rank reaches the others afterwards
    dies_after,   // the operation completes, here and for the others
    loses_result  // it completes for the others, but this rank, which stays alive, gets a CommError
  };
  Kind kind = Kind::dies_before;
  std::string communicator;  // beginning of its name; empty = any
  int operation = 0;         // number of operations before
};

// Thrown where a rank dies; not a std::exception, so that no handler treats it as an ordinary error.
struct Killed {};

// Thread-safe like the factory inside, which outlives it. Nothing happens before arm().
class FaultyFactory : public CommFactory {
 public:
  FaultyFactory(CommFactory& inner, Fault fault) : inner_(inner), fault_(std::move(fault)) {}

  void arm() { armed_ = true; }
  bool dead() const { return dead_; }
  bool happened() const { return happened_; }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void abort() noexcept override { inner_.abort(); }

 protected:
  std::unique_ptr<Communicator> make(const std::string& name, const std::vector<int>& ranks,
                                     CommUse use) override {
    return std::make_unique<FaultyCommunicator>(*this, inner_.create(name, ranks, use));
  }

 private:
  class FaultyCommunicator : public Communicator {
   public:
    FaultyCommunicator(FaultyFactory& factory, std::unique_ptr<Communicator> inner)
        : Communicator(inner->name(), inner->rank(), inner->ranks()),
          factory_(factory),
          inner_(std::move(inner)) {}

    void all_reduce(void* data, std::size_t count, ElementType type, ReduceOp op, Stream stream) override {
      factory_.run(
          *this, [&](void* to) { inner_->all_reduce(to, count, type, op, stream); }, data,
          count * element_size(type));
    }
    void reduce_scatter(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                        Stream stream) override {
      factory_.run(*this, [&](void*) { inner_->reduce_scatter(in, out, count, type, op, stream); });
    }
    void all_gather(const void* in, void* out, std::size_t count, ElementType type, Stream stream) override {
      factory_.run(*this, [&](void*) { inner_->all_gather(in, out, count, type, stream); });
    }
    void reduce_own_block(void* data, std::size_t count, ElementType type, ReduceOp op,
                          Stream stream) override {
      factory_.run(*this, [&](void*) { inner_->reduce_own_block(data, count, type, op, stream); });
    }
    void gather_blocks(void* data, std::size_t count, ElementType type, Stream stream) override {
      factory_.run(*this, [&](void*) { inner_->gather_blocks(data, count, type, stream); });
    }
    void broadcast(void* data, std::size_t count, ElementType type, int root, Stream stream) override {
      factory_.run(*this, [&](void*) { inner_->broadcast(data, count, type, root, stream); });
    }
    std::unique_ptr<Work> exchange(std::span<const Transfer> transfers, Stream stream) override {
      std::unique_ptr<Work> work;
      factory_.run(*this, [&](void*) { work = inner_->exchange(transfers, stream); });
      return work;
    }
    void abort() noexcept override { inner_->abort(); }

   private:
    FaultyFactory& factory_;
    std::unique_ptr<Communicator> inner_;
  };

  // `data`: changed in place by the operation; unchanged if the result is lost.
  template <class Operation>
  void run(const Communicator& communicator, const Operation& operation, void* data = nullptr,
           std::size_t bytes = 0) {
    const bool counts =
        armed_ && communicator.name().compare(0, fault_.communicator.size(), fault_.communicator) == 0;
    if (!counts || passed_++ != fault_.operation) return operation(data);
    happened_ = true;
    if (fault_.kind == Fault::Kind::loses_result) {
      std::vector<char> lost(static_cast<char*>(data), static_cast<char*>(data) + bytes);
      operation(lost.empty() ? data : lost.data());
      inner_.abort();
      throw CommError("test", communicator.name(), -1, "", "the result was lost");
    }
    if (fault_.kind == Fault::Kind::dies_after) operation(data);
    dead_ = true;
    inner_.abort();
    throw Killed{};
  }

  CommFactory& inner_;
  const Fault fault_;
  std::atomic<bool> armed_ = false, dead_ = false, happened_ = false;
  std::atomic<int> passed_ = 0;
};

}  // namespace sailor
