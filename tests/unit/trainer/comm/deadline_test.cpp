// Every call of a communicator has a deadline, within which a rank that hangs is named with its host: by each
// operation, in both planes, whichever rank it is. On the thread plane the rank is a thread that sleeps; on
// the socket plane it is a process that was stopped, whose kernel goes on accepting connections and bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <mutex>

#include "tests/unit/trainer/comm/ranks.h"

namespace sailor {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kDeadline = 1500ms;          // to join as well, on a machine that is busy
constexpr auto kLate = 8s;                  // no machine is that busy
constexpr std::size_t kLarge = 16'000'000;  // bytes; far beyond what a connection buffers

struct Operation {
  std::string name;      // as the error calls it
  std::size_t elements;  // floats
  void (*call)(Communicator& comm, std::vector<float>& data, int hung);
};

// Each as its healthy members call it.
const std::vector<Operation>& operations() {
  constexpr ElementType type = ElementType::f32;
  static const std::vector<Operation> all = {
      {"all_reduce", 4,
       [](Communicator& c, auto& d, int) { c.all_reduce(d.data(), 4, type, ReduceOp::sum); }},
      {"all_reduce", 100'000,
       [](Communicator& c, auto& d, int) { c.all_reduce(d.data(), 100'000, type, ReduceOp::sum); }},
      {"reduce_scatter", 3000,
       [](Communicator& c, auto& d, int) {
         c.reduce_scatter(d.data(), d.data() + 1000 * c.rank(), 1000, type, ReduceOp::sum);
       }},
      {"all_gather", 3000,
       [](Communicator& c, auto& d, int) { c.all_gather(d.data() + 1000 * c.rank(), d.data(), 1000, type); }},
      {"reduce_own_block", 3000,
       [](Communicator& c, auto& d, int) { c.reduce_own_block(d.data(), 3000, type, ReduceOp::sum); }},
      {"gather_blocks", 3000, [](Communicator& c, auto& d, int) { c.gather_blocks(d.data(), 3000, type); }},
      {"broadcast", 1000,
       [](Communicator& c, auto& d, int hung) { c.broadcast(d.data(), 1000, type, hung); }},
      {"broadcast", kLarge / 4,
       [](Communicator& c, auto& d, int hung) {  // from the rank after it; the third one gets it all
         c.broadcast(d.data(), kLarge / 4, type, (hung + 1) % c.size());
       }},
      {"all_reduce", 1, [](Communicator& c, auto&, int) { c.barrier(); }},
      {"recv", 1, [](Communicator& c, auto& d, int hung) { c.recv(d.data(), 1, type, hung)->wait(); }},
      {"send", kLarge / 4,
       [](Communicator& c, auto& d, int hung) { c.send(d.data(), kLarge / 4, type, hung)->wait(); }},
      {"exchange", 2,
       [](Communicator& c, auto& d, int hung) {
         const int other = 3 - hung - c.rank();
         const Transfer group[] = {{Transfer::Kind::send, d.data(), 1, type, other},
                                   {Transfer::Kind::recv, d.data() + 1, 1, type, other},
                                   {Transfer::Kind::recv, d.data(), 1, type, hung}};
         c.exchange(group)->wait();
       }},
  };
  return all;
}

// Who needs nothing of the rank that hangs: receivers of a broadcast from another one.
bool is_spared(const Operation& operation, int rank, int hung) {
  return operation.name == "broadcast" && operation.elements == kLarge / 4 && rank != (hung + 1) % 3;
}

// Calls `operation` as a healthy rank and checks that it names the rank that hangs, in time.
void expect_named(const Operation& operation, CommFactory& factory, Communicator& comm, int hung) {
  std::vector<float> data(operation.elements, 1.0f);
  const auto start = Clock::now();
  try {
    operation.call(comm, data, hung);
    EXPECT_TRUE(is_spared(operation, factory.rank(), hung)) << operation.name << " returned";
    return;
  } catch (const CommError& error) {
    EXPECT_EQ(error.peer(), hung) << error.what();
    EXPECT_FALSE(error.host().empty()) << error.what();
    EXPECT_EQ(error.operation(), operation.name);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("rank " + std::to_string(hung) + " on host "));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no answer within 1.5 s"));
  }
  EXPECT_GE(Clock::now() - start, kDeadline - 10ms) << operation.name;
  EXPECT_LT(Clock::now() - start, kDeadline + kLate) << operation.name;
}

// Two healthy ranks of one job. A member that leaves is detected, so both only leave after they have reported
// what they wait for.
class Healthy {
 public:
  void done_with_one() {
    if (--left_ == 0) all_done_.set_value();
  }
  void wait() const { future_.wait(); }

 private:
  std::atomic<int> left_{2};
  std::promise<void> all_done_;
  const std::shared_future<void> future_{all_done_.get_future().share()};
};

void join(std::vector<std::thread>& threads) {
  for (std::thread& thread : threads) thread.join();
}

TEST(Deadline, OnTheThreadPlaneEveryOperationNamesTheThreadThatSleeps) {
  for (const int hung : {0, 1, 2}) {
    std::vector<std::thread> jobs;  // at once: they wait most of the time
    for (const Operation& operation : operations()) {
      jobs.emplace_back([&operation, hung] {
        TestJob job("thread", 3, {kDeadline});
        Healthy healthy;
        std::vector<std::thread> threads;
        for (int rank = 0; rank < 3; ++rank) {
          threads.emplace_back([&, rank] {
            const auto comm = job.factory(rank).create("c", all_ranks(3));
            if (rank != hung) {
              expect_named(operation, job.factory(rank), *comm, hung);
              healthy.done_with_one();
            }
            healthy.wait();
          });
        }
        join(threads);
      });
    }
    join(jobs);
  }
}

// A job of three ranks, of which one is a process of its own that stops itself; the other two are threads of
// this one. All objects of a test are made before the first one runs: a fork copies no threads.
class StoppedProcess {
 public:
  // `joins`: it stops after it has joined communicator "c" and a barrier; else before.
  StoppedProcess(int hung, bool joins) : hung_(hung), secret_(make_job_secret()) {
    for (int rank = 0; rank < 3; ++rank) {
      listeners_.push_back(std::make_unique<Listener>("127.0.0.1"));
      endpoints_.push_back({"127.0.0.1", listeners_.back()->port()});
    }
    child_ = ::fork();  // no threads yet
    if (child_ == 0) stop_as_rank(joins);
    listeners_[static_cast<std::size_t>(hung)].reset();
  }
  ~StoppedProcess() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;

  // Returns when it has stopped. Thread-safe.
  void wait() {
    std::call_once(waited_, [&] { ::waitpid(child_, nullptr, WUNTRACED); });
  }

  // Runs `body` as each of the two other ranks.
  void run(const std::function<void(CommFactory&)>& body) {
    for (const auto& listener : listeners_) {
      if (listener) listener->start(secret_);
    }
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == hung_) continue;
      threads.emplace_back([&, rank] {
        SocketFactory factory(rank, endpoints_, secret_, *listeners_[static_cast<std::size_t>(rank)],
                              {kDeadline});
        body(factory);
      });
    }
    join(threads);
  }

 private:
  [[noreturn]] void stop_as_rank(bool joins) {
    try {
      Listener& mine = *listeners_[static_cast<std::size_t>(hung_)];
      if (!joins) ::raise(SIGSTOP);
      mine.start(secret_);
      SocketFactory factory(hung_, endpoints_, secret_, mine, {60s});
      const auto comm = factory.create("c", all_ranks(3));
      comm->barrier();
      ::raise(SIGSTOP);
    } catch (...) {  // its peers say what is wrong
    }
    ::_exit(1);
  }

  const int hung_;
  const JobSecret secret_;
  std::vector<Endpoint> endpoints_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  pid_t child_ = -1;
  std::once_flag waited_;
};

TEST(Deadline, OnTheSocketPlaneEveryOperationNamesTheProcessThatWasStopped) {
  struct Part {
    const Operation& operation;
    StoppedProcess job;
    Healthy healthy;
  };
  for (const int hung : {0, 1, 2}) {
    std::vector<std::unique_ptr<Part>> parts;
    for (const Operation& operation : operations()) parts.emplace_back(new Part{operation, {hung, true}, {}});
    std::vector<std::thread> jobs;
    for (const auto& part : parts) {
      jobs.emplace_back([&p = *part, hung] {
        p.job.run([&](CommFactory& factory) {
          const auto comm = factory.create("c", all_ranks(3));
          comm->barrier();
          p.job.wait();
          expect_named(p.operation, factory, *comm, hung);
          p.healthy.done_with_one();
          p.healthy.wait();
        });
      });
    }
    join(jobs);
  }
}

TEST(Deadline, AProcessThatWasStoppedBeforeItJoinsIsNamed) {
  for (const int hung : {0, 1, 2}) {
    StoppedProcess job(hung, false);
    job.wait();
    job.run([&](CommFactory& factory) {
      const auto start = Clock::now();
      try {
        factory.create("c", {factory.rank() < hung ? factory.rank() : hung,
                             factory.rank() < hung ? hung : factory.rank()});
        ADD_FAILURE() << "joined a stopped process";
      } catch (const CommError& error) {
        EXPECT_EQ(error.peer(), hung) << error.what();
        EXPECT_EQ(error.host(), "127.0.0.1");
        EXPECT_EQ(error.operation(), "create");
        EXPECT_THAT(error.what(), ::testing::HasSubstr("did not join in time"));
      }
      EXPECT_LT(Clock::now() - start, kDeadline + kLate);
    });
  }
}

// Beyond four ranks a small sum goes through the first one: the others wait for it, and it for the rank that
// hangs. All end in time, and whom the one that hangs is waited for by names it.
TEST(Deadline, ASmallSumOfManyRanksEndsInTimeOnAllOfThem) {
  for (const char* plane : {"thread", "socket"}) {
    TestJob job(plane, 6, {kDeadline});
    std::promise<void> done;
    const std::shared_future<void> all_done = done.get_future().share();
    std::atomic<int> left{5};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 6; ++rank) {
      threads.emplace_back([&, rank] {
        const auto comm = job.factory(rank).create("c", all_ranks(6));
        if (rank == 4) return all_done.wait();
        const auto start = Clock::now();
        try {
          comm->barrier();
          ADD_FAILURE() << "nobody is missed";
        } catch (const CommError& error) {
          EXPECT_EQ(error.peer(), rank == 0 ? 4 : 0) << error.what();
        }
        EXPECT_LT(Clock::now() - start, kDeadline + kLate);
        if (--left == 0) done.set_value();
        all_done.wait();
      });
    }
    join(threads);
  }
}

}  // namespace
}  // namespace sailor
