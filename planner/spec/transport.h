// What carries the messages of ranks: NCCL between GPUs; TCP connections between processors, and between GPU
// ranks for what is in host memory (losses, checkpoints, transferred states).
#pragma once

namespace sailor {

enum class Transport { nccl, sockets };

// As in files: "nccl", "sockets".
constexpr const char* to_string(Transport transport) {
  return transport == Transport::nccl ? "nccl" : "sockets";
}
// For people.
constexpr const char* name_of(Transport transport) {
  return transport == Transport::nccl ? "NCCL" : "sockets";
}

}  // namespace sailor
