#include "trainer/comm/device.h"

#include <atomic>
#include <chrono>
#include <cstring>

namespace sailor {
namespace {

class HostMark : public TimeMark {
 public:
  const std::chrono::steady_clock::time_point at = std::chrono::steady_clock::now();
};

std::atomic<int> devices_opened{0};

}  // namespace

Device::Device() {
  ++devices_opened;
}

int Device::opened() {
  return devices_opened;
}

void Device::order(Stream before, Stream after) {
  static_cast<void>(before);
  static_cast<void>(after);
}

std::unique_ptr<StreamPoint> Device::point(Stream stream) {
  static_cast<void>(stream);
  return nullptr;
}

void Device::wait(Stream stream) {
  static_cast<void>(stream);
}

void Device::copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  static_cast<void>(stream);
  if (bytes > 0) std::memcpy(to, from, bytes);
}

std::shared_ptr<char> Device::host_memory(std::size_t bytes) {
  return {new char[bytes], std::default_delete<char[]>()};
}

std::shared_ptr<char> Device::device_memory(std::size_t bytes) {
  return {new char[bytes](), std::default_delete<char[]>()};
}

std::shared_ptr<void> Device::hold(Stream stream) {
  static_cast<void>(stream);
  return nullptr;
}

std::shared_ptr<TimeMark> Device::mark() {
  return std::make_shared<HostMark>();
}

double Device::seconds_between(const TimeMark& from, const TimeMark& to) {
  return std::chrono::duration<double>(dynamic_cast<const HostMark&>(to).at -
                                       dynamic_cast<const HostMark&>(from).at)
      .count();
}

Device& host_device() {
  static Device device;
  return device;
}

}  // namespace sailor
