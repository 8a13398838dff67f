#include "trainer/checkpoint/checkpoint_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "planner/spec/text_file.h"
#include "trainer/checkpoint/block_checksums.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifestFile = "/manifest.json";
constexpr const char* kDoneFile = "/DONE";
constexpr const char* kPrefix = "step-";
constexpr const char* kUnfinished = ".tmp";
constexpr const char* kReplaced = ".replaced.tmp";

[[noreturn]] void fail(const std::string& action, const std::string& path, const std::string& reason) {
  throw std::runtime_error(fmt::format("cannot {} {}: {}", action, path, reason));
}

void check(const std::error_code& error, const std::string& action, const std::string& path) {
  if (error) fail(action, path, error.message());
}

// The step of a name such as step-50; -1 for any other.
int64_t step_of(const std::string& name) {
  const std::size_t prefix = std::strlen(kPrefix);
  if (name.compare(0, prefix, kPrefix) != 0 || name.size() == prefix) return -1;
  int64_t step = -1;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + prefix, end, step);
  return error == std::errc() && rest == end && name[prefix] != '-' ? step : -1;
}

int64_t step_of_path(const std::string& path) {
  return step_of(fs::path(path).filename().string());
}

bool is_unfinished(const std::string& name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos || step_of(name.substr(0, dot)) < 0) return false;
  const std::string ending = name.substr(dot);
  return ending == kUnfinished || ending == kReplaced;
}

void remove_folder(const std::string& path) {
  std::error_code error;
  fs::remove(path + kDoneFile, error);  // first: half a folder must not look like a whole one
  check(error, "remove", path + kDoneFile);
  fs::remove_all(path, error);
  check(error, "remove", path);
}

std::string read_part(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw CheckpointDamaged(fmt::format("{} is missing", path));
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) throw CheckpointDamaged(path + " cannot be read");
  return text.str();
}

std::string done_text(const std::string& manifest) {
  return checksum_of(manifest.data(), static_cast<int64_t>(manifest.size())) + "\n";
}

}  // namespace

std::vector<std::string> list_checkpoints(const std::string& directory) {
  std::vector<std::pair<int64_t, std::string>> found;
  std::error_code error;
  auto it = fs::directory_iterator(directory, error);
  if (error == std::errc::no_such_file_or_directory) return {};
  check(error, "read", directory);
  for (; it != fs::directory_iterator(); it.increment(error)) {
    const int64_t step = step_of_path(it->path());
    if (step >= 0) found.emplace_back(step, directory + "/" + it->path().filename().string());
  }
  check(error, "read", directory);
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

CheckpointManifest open_checkpoint(const std::string& path) {
  const std::string done = read_part(path + kDoneFile), text = read_part(path + kManifestFile);
  if (done != done_text(text))
    throw CheckpointDamaged(
        fmt::format("{}{} is not what was written: its checksum is another", path, kManifestFile));
  CheckpointManifest manifest = parse_manifest(text, path + kManifestFile);
  for (const CheckpointFile& file : manifest.files) {
    const std::string name = path + "/" + file.name;
    std::error_code error;
    const auto size = fs::file_size(name, error);
    if (error) throw CheckpointDamaged(fmt::format("{} is missing: {}", name, error.message()));
    if (static_cast<int64_t>(size) != file.bytes)
      throw CheckpointDamaged(fmt::format("{} has {} bytes, {} were written", name, size, file.bytes));
  }
  return manifest;
}

std::string skipped_line(const std::string& path, const std::string& damage) {
  return fmt::format("skipped {}: {}", fs::path(path).filename().string(), damage);
}

std::optional<FoundCheckpoint> newest_checkpoint(const std::string& directory,
                                                 std::vector<std::string>& skipped) {
  for (const std::string& path : list_checkpoints(directory)) {
    try {
      return FoundCheckpoint{path, open_checkpoint(path)};
    } catch (const CheckpointDamaged& damage) {
      skipped.push_back(skipped_line(path, damage.what()));
    }
  }
  return std::nullopt;
}

std::string set_checkpoints_aside(const std::string& directory) {
  const std::vector<std::string> paths = list_checkpoints(directory);
  if (paths.empty()) return "";
  std::error_code error;
  std::string aside;
  for (int number = 1; aside.empty(); ++number) {
    const std::string name = fmt::format("{}/earlier-{}", directory, number);
    if (fs::create_directory(name, error)) aside = name;
    check(error, "make", name);
  }
  for (const std::string& path : paths) {
    fs::rename(path, aside + "/" + fs::path(path).filename().string(), error);
    check(error, "rename", path);
  }
  sync_directory(directory);
  return aside;
}

std::string begin_checkpoint(const std::string& directory, int64_t step) {
  create_directories_on_disk(directory);
  std::error_code error;
  std::vector<std::string> left_over;
  for (auto it = fs::directory_iterator(directory, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    if (is_unfinished(it->path().filename().string())) left_over.push_back(it->path().string());
  }
  check(error, "read", directory);
  for (const std::string& path : left_over) remove_folder(path);
  const std::string path = fmt::format("{}/{}{}{}", directory, kPrefix, step, kUnfinished);
  fs::create_directory(path, error);
  check(error, "make", path);
  return path;
}

void require_space(const std::string& directory, int64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  if (error || static_cast<double>(space.available) > static_cast<double>(bytes)) return;
  fail("save", directory,
       fmt::format("{:.1f} MB are needed, {:.1f} MB are free; make room, or keep fewer (checkpoint.keep)",
                   1e-6 * static_cast<double>(bytes), 1e-6 * static_cast<double>(space.available)));
}

std::string commit_checkpoint(const std::string& directory, const CheckpointManifest& manifest) {
  if (const std::string wrong = incomplete(manifest); !wrong.empty())
    throw std::logic_error("a checkpoint that is not complete: " + wrong);
  const std::string path = fmt::format("{}/{}{}", directory, kPrefix, manifest.step);
  const std::string written = path + kUnfinished;
  const std::string text = to_json(manifest);
  write_file_atomically(written + kManifestFile, text);  // syncs the names of all files
  write_file_atomically(written + kDoneFile, done_text(text));
  if (const std::string older = replace_directory(written, path, path + kReplaced); !older.empty())
    remove_folder(older);
  return path;
}

std::vector<std::string> prune_checkpoints(const std::string& directory, int64_t step, int keep) {
  std::vector<std::string> removed;
  int complete = 0;
  for (const std::string& path : list_checkpoints(directory)) {
    if (step_of_path(path) > step) continue;
    if (complete >= keep) {
      remove_folder(path);
      removed.push_back(path);
      continue;
    }
    try {
      open_checkpoint(path);
      ++complete;
    } catch (const CheckpointDamaged&) {
    }
  }
  return removed;
}

}  // namespace sailor
