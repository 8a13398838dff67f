// The socket plane's all-reduce beside MPI_Allreduce, and encrypted, in turn, in the same processes. Run as
//     mpirun -n N --mca btl tcp,self bench_all_reduce [--bytes B] [--rounds R]
// Rank 0 prints one CSV row: bytes,ours_s,mpi_s,ratio,encrypted_s,encrypted_ratio (medians; ratios to ours,
// above 1 = ours is faster).
#include <fmt/format.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <numeric>

#include "trainer/comm/host_memory.h"
#include "trainer/comm/socket_plane.h"

namespace sailor::bench {
namespace {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Of the slowest rank, which all of them wait for.
double seconds_of(const std::function<void()>& work) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto start = std::chrono::steady_clock::now();
  work();
  double mine = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

void run(int64_t bytes, int rounds) {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Listener listener("127.0.0.1");
  JobSecret secret{};
  if (rank == 0) secret = make_job_secret();
  MPI_Bcast(secret.data(), static_cast<int>(secret.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
  listener.start(secret);
  const uint16_t port = listener.port();
  std::vector<uint16_t> ports(static_cast<size_t>(size));
  MPI_Allgather(&port, 1, MPI_UINT16_T, ports.data(), 1, MPI_UINT16_T, MPI_COMM_WORLD);
  std::vector<Endpoint> endpoints;
  for (uint16_t p : ports) endpoints.push_back({"127.0.0.1", p});
  SocketFactory factory(rank, endpoints, secret, listener);
  SocketFactory encrypting(rank, endpoints, secret, listener, {.encrypt = true}, "encrypted");
  std::vector<int> everybody(static_cast<size_t>(size));
  std::iota(everybody.begin(), everybody.end(), 0);
  const auto comm = factory.create("bench", everybody);
  const auto encrypted = encrypting.create("bench", everybody);

  const auto count = static_cast<size_t>(bytes) / sizeof(float);
  std::vector<float> values(count, 1.0f);
  std::vector<double> ours, theirs, sealed;
  for (int round = 0; round <= rounds; ++round) {
    const double own =
        seconds_of([&] { comm->all_reduce(values.data(), count, ElementType::f32, ReduceOp::sum); });
    const double mpi = seconds_of([&] {
      MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    });
    std::fill(values.begin(), values.end(), 1.0f);
    const double hidden =
        seconds_of([&] { encrypted->all_reduce(values.data(), count, ElementType::f32, ReduceOp::sum); });
    std::fill(values.begin(), values.end(), 1.0f);
    if (round == 0) continue;  // warm-up
    ours.push_back(own);
    theirs.push_back(mpi);
    sealed.push_back(hidden);
  }
  if (rank == 0)
    fmt::print("{},{:.5f},{:.5f},{:.3f},{:.5f},{:.3f}\n", bytes, median(ours), median(theirs),
               median(theirs) / median(ours), median(sealed), median(sealed) / median(ours));
}

}  // namespace
}  // namespace sailor::bench

int main(int argc, char** argv) {
  int64_t bytes = int64_t{64} << 20;
  int rounds = 11;
  CLI::App app{"All-reduce over sockets beside MPI_Allreduce"};
  app.add_option("--bytes", bytes, "of fp32 values")->check(CLI::Range(int64_t{4}, int64_t{1} << 32));
  app.add_option("--rounds", rounds)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  sailor::keep_freed_memory();  // as a rank does
  MPI_Init(&argc, &argv);
  int code = 0;
  try {
    sailor::bench::run(bytes, rounds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sailor: %s\n", error.what());
    code = 1;
    MPI_Abort(MPI_COMM_WORLD, code);
  }
  MPI_Finalize();
  return code;
}
