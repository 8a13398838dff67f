#include "trainer/comm/directory_bootstrap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "planner/process/file_descriptor.h"

namespace sailor {
namespace {

constexpr auto kPause = std::chrono::milliseconds(5);

[[noreturn]] void fail(const std::string& file, const std::string& what) {
  throw std::runtime_error(fmt::format("SAILOR_RENDEZVOUS: {}: {}", file, what));
}

int number(const char* name) {
  const char* text = std::getenv(name);
  int value = -1;
  if (text != nullptr) {
    const char* end = text + std::strlen(text);
    if (const auto [at, error] = std::from_chars(text, end, value); error != std::errc() || at != end)
      value = -1;
  }
  if (value < 0)
    throw std::runtime_error(fmt::format("{} must be a number when SAILOR_RENDEZVOUS is set, is {}", name,
                                         text == nullptr ? "not set" : fmt::format("\"{}\"", text)));
  return value;
}

void require_private(const std::string& directory) {
  struct stat about {};
  if (stat(directory.c_str(), &about) != 0) fail(directory, std::strerror(errno));
  if (!S_ISDIR(about.st_mode)) fail(directory, "is not a directory");
  if (about.st_uid != geteuid() || (about.st_mode & 077) != 0)
    fail(directory, "must belong to this user and be accessible to nobody else (chmod 700)");
}

// Appears whole or not at all.
void publish(const std::string& file, const std::string& bytes) {
  const std::string unfinished = file + ".new";
  FileDescriptor out(open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!out.valid())
    fail(unfinished, errno == EEXIST ? "is there from an earlier start" : std::strerror(errno));
  for (std::size_t written = 0; written < bytes.size();) {
    const ssize_t n = write(out.get(), bytes.data() + written, bytes.size() - written);
    if (n < 0 && errno != EINTR) fail(unfinished, std::strerror(errno));
    if (n > 0) written += static_cast<std::size_t>(n);
  }
  if (link(unfinished.c_str(), file.c_str()) != 0)
    fail(file,
         errno == EEXIST ? "is there from an earlier start: use another directory" : std::strerror(errno));
  unlink(unfinished.c_str());
}

// Nothing when it is not there yet.
std::optional<std::string> read_published(const std::string& file) {
  FileDescriptor in(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in.valid()) {
    if (errno == ENOENT) return std::nullopt;
    fail(file, std::strerror(errno));
  }
  std::string bytes(kMaxCardBytes + 1, '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t n = read(in.get(), bytes.data() + size, bytes.size() - size);
    if (n == 0) break;
    if (n < 0 && errno != EINTR) fail(file, std::strerror(errno));
    if (n > 0) size += static_cast<std::size_t>(n);
  }
  if (size > kMaxCardBytes) fail(file, "is larger than a rank's card can be");
  bytes.resize(size);
  return bytes;
}

std::string file_of(const Rendezvous& rendezvous, int rank) {
  return fmt::format("{}/rank-{}", rendezvous.directory, rank);
}

std::string secret_file(const Rendezvous& rendezvous) {
  return rendezvous.directory + "/secret";
}

}  // namespace

std::optional<Rendezvous> rendezvous_from_environment() {
  const char* directory = std::getenv("SAILOR_RENDEZVOUS");
  if (directory == nullptr || *directory == '\0') return std::nullopt;
  Rendezvous rendezvous{
      .directory = directory, .rank = number("SAILOR_RANK"), .ranks = number("SAILOR_RANKS")};
  if (rendezvous.rank >= rendezvous.ranks)
    throw std::runtime_error(
        fmt::format("SAILOR_RANK={} is not below SAILOR_RANKS={}", rendezvous.rank, rendezvous.ranks));
  return rendezvous;
}

BootstrapResult directory_bootstrap(const Rendezvous& rendezvous, const std::string& card) {
  require_private(rendezvous.directory);
  BootstrapResult result{.rank = rendezvous.rank, .size = rendezvous.ranks, .cards = {}, .secret = {}};
  if (result.rank == 0) {
    // Before rank 0's card: who sees all cards finds the secret.
    result.secret = make_job_secret();
    publish(secret_file(rendezvous), std::string(result.secret.begin(), result.secret.end()));
  }
  publish(file_of(rendezvous, result.rank), card);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(rendezvous.deadline_s);
  for (int rank = 0; rank < result.size; ++rank) {
    std::optional<std::string> other;
    while (!(other = read_published(file_of(rendezvous, rank)))) {
      if (std::chrono::steady_clock::now() > deadline)
        fail(rendezvous.directory, fmt::format("rank {} of {} did not come within {:.0f} s", rank,
                                               result.size, rendezvous.deadline_s));
      std::this_thread::sleep_for(kPause);
    }
    result.cards.push_back(std::move(*other));
  }
  if (result.rank != 0) {
    const std::optional<std::string> secret = read_published(secret_file(rendezvous));
    if (!secret || secret->size() != result.secret.size()) fail(secret_file(rendezvous), "is not a secret");
    std::copy(secret->begin(), secret->end(), result.secret.begin());
  }
  return result;
}

}  // namespace sailor
