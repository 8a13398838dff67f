#include "trainer/kernels/host_grid.h"

#include <fmt/format.h>
#include <ucontext.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <stdexcept>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace sailor::kernels {
namespace {

constexpr std::size_t kStackBytes = 128 << 10;

// A context to switch to, with what sanitizers have to know of it.
struct Fiber {
  enum class State { ready, at_warp, at_barrier, done };
  ucontext_t context{};
  State state = State::ready;
  std::unique_ptr<std::byte[]> stack;
  const void* stack_begin = nullptr;
  std::size_t stack_bytes = 0;
  void* sanitizer_stack = nullptr;
  void* sanitizer_fiber = nullptr;
};

void switch_fiber(Fiber& from, Fiber& to, [[maybe_unused]] bool from_ends = false) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(from_ends ? nullptr : &from.sanitizer_stack, to.stack_begin, to.stack_bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to.sanitizer_fiber, 0);
#endif
  swapcontext(&from.context, &to.context);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from.sanitizer_stack, nullptr, nullptr);
#endif
}

}  // namespace

class FiberBlock {
 public:
  FiberBlock(int threads, std::size_t shared_bytes, const std::function<void(HostGrid&)>& kernel)
      : kernel_(kernel), shared_(shared_bytes), slots_(static_cast<std::size_t>(threads)) {
    if (threads % kWarp != 0 || threads <= 0 || threads > kMaxThreads)
      throw std::logic_error(fmt::format("a block of {} threads", threads));
    fibers_.resize(static_cast<std::size_t>(threads));
    for (Fiber& fiber : fibers_) {
      fiber.stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
      fiber.stack_begin = fiber.stack.get();
      fiber.stack_bytes = kStackBytes;
#if defined(__SANITIZE_THREAD__)
      fiber.sanitizer_fiber = __tsan_create_fiber(0);
#endif
    }
#if defined(__SANITIZE_THREAD__)
    scheduler_.sanitizer_fiber = __tsan_get_current_fiber();
#endif
  }
  ~FiberBlock() {
#if defined(__SANITIZE_THREAD__)
    for (Fiber& fiber : fibers_) __tsan_destroy_fiber(fiber.sanitizer_fiber);
#endif
  }
  FiberBlock(const FiberBlock&) = delete;
  FiberBlock& operator=(const FiberBlock&) = delete;

  void run(int block, int blocks) {
    std::fill(shared_.begin(), shared_.end(), std::byte{0xff});
    block_ = block;
    blocks_ = blocks;
    for (Fiber& fiber : fibers_) start(fiber);
    do {
      for (current_ = 0; current_ < threads(); ++current_) {
        Fiber& fiber = fibers_[current_];
        if (fiber.state == Fiber::State::ready) switch_fiber(scheduler_, fiber);
        if (error_) std::rethrow_exception(error_);
      }
    } while (release());
  }
  void wait(Fiber::State at) {
    Fiber& fiber = fibers_[current_];
    fiber.state = at;
    switch_fiber(fiber, scheduler_);
  }
  std::byte* shared() {
    return shared_.data();
  }
  void* slot(int thread) {
    return &slots_.at(static_cast<std::size_t>(thread));
  }

 private:
  std::size_t threads() const {
    return fibers_.size();
  }

  void start(Fiber& fiber) {
    fiber.state = Fiber::State::ready;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    running = this;
    makecontext(&fiber.context, &FiberBlock::enter, 0);
  }
  static void enter() {
#if defined(__SANITIZE_ADDRESS__)
    // The first switch into the scheduler's first fiber says where the scheduler's own stack is.
    __sanitizer_finish_switch_fiber(nullptr, &running->scheduler_.stack_begin,
                                    &running->scheduler_.stack_bytes);
#endif
    running->run_current();
  }
  void run_current() {
    const std::size_t thread = current_;
    try {
      HostGrid grid(*this, block_, blocks_, static_cast<int>(thread), static_cast<int>(threads()));
      kernel_(grid);
    } catch (...) {
      error_ = std::current_exception();
    }
    fibers_[thread].state = Fiber::State::done;
    switch_fiber(fibers_[thread], scheduler_, /*from_ends=*/true);
  }

  int64_t waiting(std::size_t first, std::size_t end, Fiber::State at) const {
    return std::count_if(fibers_.begin() + static_cast<std::ptrdiff_t>(first),
                         fibers_.begin() + static_cast<std::ptrdiff_t>(end),
                         [&](const Fiber& fiber) { return fiber.state == at; });
  }
  void make_ready(std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) fibers_[i].state = Fiber::State::ready;
  }
  // False when all threads are done.
  bool release() {
    bool released = false;
    for (std::size_t warp = 0; warp < threads(); warp += kWarp) {
      if (waiting(warp, warp + kWarp, Fiber::State::at_warp) < kWarp) continue;
      make_ready(warp, warp + kWarp);
      released = true;
    }
    if (released) return true;
    const int64_t at_barrier = waiting(0, threads(), Fiber::State::at_barrier),
                  done = waiting(0, threads(), Fiber::State::done);
    if (done == static_cast<int64_t>(threads())) return false;
    if (at_barrier < static_cast<int64_t>(threads()))
      throw std::logic_error(fmt::format(
          "of the {} threads of block {}, {} wait at a barrier, {} in a warp, and {} have ended", threads(),
          block_, at_barrier, static_cast<int64_t>(threads()) - at_barrier - done, done));
    make_ready(0, threads());
    return true;
  }

  static thread_local FiberBlock* running;

  const std::function<void(HostGrid&)>& kernel_;
  std::vector<std::byte> shared_;
  std::vector<double> slots_;
  std::vector<Fiber> fibers_;
  Fiber scheduler_;
  std::size_t current_ = 0;
  int block_ = 0, blocks_ = 0;
  std::exception_ptr error_;
};

thread_local FiberBlock* FiberBlock::running = nullptr;

void HostGrid::barrier() {
  fibers_.wait(Fiber::State::at_barrier);
}
std::byte* HostGrid::shared() {
  return fibers_.shared();
}
void* HostGrid::slot(int thread) {
  return fibers_.slot(thread);
}
void HostGrid::wait_for_warp() {
  fibers_.wait(Fiber::State::at_warp);
}

void run_on_processor(int blocks, int threads, std::size_t shared_bytes,
                      const std::function<void(HostGrid&)>& kernel) {
  FiberBlock fibers(threads, kReserved + shared_bytes, kernel);
  for (int block = 0; block < blocks; ++block) fibers.run(block, blocks);
}

}  // namespace sailor::kernels
