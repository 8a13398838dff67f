#include "profiler/link_bench.h"

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>

#include "planner/process/seconds_since.h"
#include "trainer/comm/socket_plane.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

// Rank 0 decides whether there is another round, and the others follow.
bool another_round(Communicator& group, bool wanted) {
  unsigned char again = wanted ? 1 : 0;
  group.broadcast(&again, 1, ElementType::u8, 0);
  return again == 1;
}

// The median time of `round` on rank 0, for one size after the other.
std::map<int64_t, double> time_rounds(int ranks, const std::vector<int64_t>& sizes_bytes,
                                      const MeasuringOptions& options,
                                      const std::function<void(Communicator&, std::vector<char>&)>& round) {
  std::map<int64_t, double> medians;
  run_ranks(ranks, [&](Communicator& group) {
    for (const int64_t bytes : sizes_bytes) {
      std::vector<char> buffer(static_cast<size_t>(bytes));
      Samples samples;
      for (int i = 0; i < options.warm_up; ++i) round(group, buffer);
      const auto begin = Clock::now();
      while (another_round(group, !enough(samples, seconds_since(begin), options))) {
        const auto start = Clock::now();
        round(group, buffer);
        samples.add(seconds_since(start));
      }
      if (group.rank() == 0) medians[bytes] = samples.median();
    }
  });
  return medians;
}

}  // namespace

void run_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  run_ranks(ranks, [&body](Communicator& all, CommFactory&) { body(all); });
}

void run_ranks(int ranks, const std::function<void(Communicator&, CommFactory&)>& body) {
  std::vector<std::unique_ptr<Listener>> listeners;
  std::vector<Endpoint> endpoints;
  const JobSecret secret = make_job_secret();
  for (int i = 0; i < ranks; ++i) {
    listeners.push_back(std::make_unique<Listener>("127.0.0.1"));
    endpoints.push_back({"127.0.0.1", listeners.back()->port()});
    listeners.back()->start(secret);
  }
  std::vector<int> members(static_cast<size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        SocketFactory factory(rank, endpoints, secret, *listeners[static_cast<size_t>(rank)]);
        const auto communicator = factory.create("bench", members);
        body(*communicator, factory);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

std::vector<std::pair<double, double>> measure_messages(const std::vector<int64_t>& sizes_bytes,
                                                        const MeasuringOptions& options) {
  const auto ping_pong = [](Communicator& group, std::vector<char>& buffer) {
    const int peer = 1 - group.rank();
    for (const int sender : {0, 1}) {
      if (group.rank() == sender) {
        group.send(buffer.data(), buffer.size(), ElementType::u8, peer)->wait();
      } else {
        group.recv(buffer.data(), buffer.size(), ElementType::u8, peer)->wait();
      }
    }
  };
  std::vector<std::pair<double, double>> points;
  for (const auto& [bytes, round_trip_s] : time_rounds(2, sizes_bytes, options, ping_pong))
    points.emplace_back(static_cast<double>(bytes), 0.5 * round_trip_s);
  return points;
}

std::map<int64_t, double> measure_all_reduce(int ranks, const std::vector<int64_t>& sizes_bytes,
                                             const MeasuringOptions& options) {
  return time_rounds(ranks, sizes_bytes, options, [](Communicator& group, std::vector<char>& buffer) {
    group.all_reduce(buffer.data(), buffer.size() / sizeof(float), ElementType::f32, ReduceOp::sum);
  });
}

}  // namespace sailor
