#include "trainer/comm/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace sailor {

std::size_t element_size(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return 4;
    case ElementType::f64:
      return 8;
    case ElementType::bf16:
    case ElementType::f16:
      return 2;
    case ElementType::i64:
      return 8;
    case ElementType::u8:
      return 1;
  }
  throw std::logic_error("element_size: no such element type");
}

const char* to_string(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return "f32";
    case ElementType::f64:
      return "f64";
    case ElementType::bf16:
      return "bf16";
    case ElementType::f16:
      return "f16";
    case ElementType::i64:
      return "i64";
    case ElementType::u8:
      return "u8";
  }
  return "?";
}

CommError::CommError(const std::string& operation, const std::string& communicator, int peer,
                     const std::string& host, const std::string& reason)
    : std::runtime_error(peer >= 0 ? fmt::format("{} on {}: rank {} on host {}: {}", operation, communicator,
                                                 peer, host.empty() ? "?" : host, reason)
                                   : fmt::format("{} on {}: {}", operation, communicator, reason)),
      operation_(operation),
      peer_(peer),
      host_(host),
      reason_(reason) {}

BlockRange block_of(std::size_t count, int size, int rank) {
  const std::size_t per_rank = (count + static_cast<std::size_t>(size) - 1) / static_cast<std::size_t>(size);
  const std::size_t first = std::min(count, per_rank * static_cast<std::size_t>(rank));
  return {first, std::min(count, first + per_rank) - first};
}

Communicator::Communicator(std::string name, int rank, std::vector<int> ranks)
    : name_(std::move(name)), rank_(rank), ranks_(std::move(ranks)) {}

void Communicator::barrier() {
  uint8_t token = 0;
  all_reduce(&token, 1, ElementType::u8, ReduceOp::max);
}

std::unique_ptr<Work> Communicator::send(const void* data, std::size_t count, ElementType type, int peer,
                                         Stream stream) {
  const Transfer transfer{Transfer::Kind::send, const_cast<void*>(data), count, type, peer};
  return exchange({&transfer, 1}, stream);
}

std::unique_ptr<Work> Communicator::recv(void* data, std::size_t count, ElementType type, int peer,
                                         Stream stream) {
  const Transfer transfer{Transfer::Kind::recv, data, count, type, peer};
  return exchange({&transfer, 1}, stream);
}

}  // namespace sailor
