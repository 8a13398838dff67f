#include "trainer/control/data_secret.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace sailor {

std::string make_data_secret() {
  std::array<unsigned char, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw std::runtime_error(fmt::format("cannot generate random numbers: {}", std::strerror(errno)));
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::array<unsigned char, 32> data_secret_from_environment() {
  const char* value = std::getenv("SAILOR_DATA_SECRET");
  const std::string text = value ? value : "";
  std::array<unsigned char, 32> bytes{};
  bool sound = text.size() == 2 * bytes.size();
  for (size_t i = 0; sound && i < bytes.size(); ++i) {
    const char* first = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(first, first + 2, bytes[i], 16);
    sound = error == std::errc() && end == first + 2;
  }
  if (!sound)
    throw std::runtime_error(
        "SAILOR_DATA_SECRET is not set to a secret: this program is started by sailor run");
  return bytes;
}

}  // namespace sailor
