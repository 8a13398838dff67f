#include "trainer/control/job_secrets.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <utility>

namespace sailor {
namespace {

constexpr size_t kControlKeyLength = 40;  // Z85 text of 32 bytes

std::string secrets_file(const std::string& run_directory) {
  return run_directory + "/secrets";
}

std::runtime_error secrets_error(const std::string& path, const char* what) {
  return std::runtime_error(fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
}

std::optional<std::array<unsigned char, 32>> from_hexadecimal(const std::string& text) {
  std::array<unsigned char, 32> bytes{};
  if (text.size() != 2 * bytes.size()) return std::nullopt;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char* first = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(first, first + 2, bytes[i], 16);
    if (error != std::errc() || end != first + 2) return std::nullopt;
  }
  return bytes;
}

}  // namespace

std::array<unsigned char, 32> make_data_secret() {
  std::array<unsigned char, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw std::runtime_error(fmt::format("cannot generate random numbers: {}", std::strerror(errno)));
  return bytes;
}

JobSecretsFile::JobSecretsFile(const std::string& run_directory, const JobSecrets& secrets)
    : path_(secrets_file(run_directory)) {
  std::string text = secrets.control_client_key + "\n";
  for (const unsigned char byte : secrets.data) text += fmt::format("{:02x}", byte);
  text += secrets.encrypts_data ? "\nencrypted\n" : "\n";
  if (unlink(path_.c_str()) != 0 && errno != ENOENT) throw secrets_error(path_, "replace");
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) throw secrets_error(path_, "create");
  struct stat status {};
  private_ = fstat(file, &status) == 0 && (status.st_mode & 077) == 0;
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (const int error = errno; close(file) != 0 || !written) {
    if (!written) errno = error;
    const std::runtime_error failure = secrets_error(path_, "write");
    unlink(path_.c_str());
    throw failure;
  }
}

JobSecretsFile::~JobSecretsFile() {
  unlink(path_.c_str());
}

JobSecrets read_job_secrets(const std::string& run_directory) {
  const std::string path = secrets_file(run_directory);
  std::ifstream file(path);
  if (!file) throw secrets_error(path, "read");
  JobSecrets secrets;
  std::string data, encrypted;
  std::getline(file, secrets.control_client_key);
  std::getline(file, data);
  std::getline(file, encrypted);
  const auto bytes = from_hexadecimal(data);
  if (!bytes || secrets.control_client_key.size() != kControlKeyLength)
    throw std::runtime_error(
        fmt::format("{} does not have the secrets of a job; do its nodes see the same directory?", path));
  secrets.data = *bytes;
  secrets.encrypts_data = encrypted == "encrypted";
  return secrets;
}

}  // namespace sailor
