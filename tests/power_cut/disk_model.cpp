#include "tests/power_cut/disk_model.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>

#include "planner/process/file_descriptor.h"

namespace sailor::power_cut {
namespace {

namespace fs = std::filesystem;

// Zeros fill what is missing before.
void write_at(std::string& content, std::size_t at, const std::string& data, std::size_t first,
              std::size_t count) {
  content.resize(std::max(content.size(), at + first + count));
  content.replace(at + first, count, data, first, count);
}

void apply_whole(std::string& content, const Record& record) {
  const auto offset = static_cast<std::size_t>(record.offset);
  if (record.operation == 'w') write_at(content, offset, record.data, 0, record.data.size());
  if (record.operation == 't') content.resize(offset);
  if (record.operation == 'a') content.resize(std::max(content.size(), offset));
}

void write_file(const fs::path& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace

std::vector<Record> read_recording(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<Record> records;
  std::array<int64_t, 6> header{};
  while (in.read(reinterpret_cast<char*>(header.data()), sizeof header)) {
    Record record{static_cast<char>(header[0]), header[1], header[2], "", "", ""};
    for (auto [text, bytes] :
         {std::pair(&record.path, header[3]), {&record.other_path, header[4]}, {&record.data, header[5]}}) {
      text->resize(static_cast<std::size_t>(bytes));
      in.read(text->data(), bytes);
    }
    if (!in) throw std::runtime_error(file + " ends within a record");
    records.push_back(std::move(record));
  }
  return records;
}

void record_output(const std::string& recording, std::string_view text) {
  const FileDescriptor file(open(recording.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  std::array<int64_t, 6> header = {'o', 0, 0, 0, 0, static_cast<int64_t>(text.size())};
  const std::array<iovec, 2> parts = {
      {{header.data(), sizeof header}, {const_cast<char*>(text.data()), text.size()}}};
  if (flock(file.get(), LOCK_EX) != 0 ||
      writev(file.get(), parts.data(), 2) != static_cast<ssize_t>(sizeof header + text.size()))
    throw std::runtime_error("cannot write " + recording);
}

DiskModel::Name DiskModel::name_of(const std::string& path) const {
  const fs::path full(path);
  const std::string parent = full.parent_path();
  if (parent == directory_) return {0, full.filename()};
  const int64_t id = find(parent);
  if (id == 0) throw std::runtime_error(path + " is in a directory that was not made");
  return {id, full.filename()};
}

int64_t DiskModel::find(const std::string& path) const {
  const auto found = names_.find(name_of(path));
  return found == names_.end() ? 0 : found->second;
}

void DiskModel::change(std::vector<std::pair<Name, int64_t>> set) {
  for (const auto& [name, id] : set) {
    if (id == 0)
      names_.erase(name);
    else
      names_[name] = id;
  }
  changes_.push_back({std::move(set)});
}

void DiskModel::sync(int64_t id) {
  File& file = files_[id];
  const bool directory = id == 0 || file.directory;
  if (ignored_ == (directory ? Ignored::directory_syncs : Ignored::file_syncs)) return;
  if (!directory) {
    file.on_disk = file.seen;
    file.since.clear();
  }
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    for (const auto& [name, target] : changes_[i].set) {
      if (name.directory == id) changes_[i].on_disk = true;
      if (name.directory == id || target == id) in_journal_ = std::max(in_journal_, i + 1);
    }
  }
}

void DiskModel::apply(const Record& record) {
  const auto id_of = [&] {
    const auto found = ids_.find(record.inode);
    if (found == ids_.end())
      throw std::runtime_error(
          fmt::format("change {} of a file that was not made: inode {}", record.operation, record.inode));
    return found->second;
  };
  switch (record.operation) {
    case 'c':
    case 'd':
      ids_[record.inode] = next_id_;
      files_[next_id_].directory = record.operation == 'd';
      return change({{name_of(record.path), next_id_++}});
    case 'w':
    case 't':
    case 'a': {
      File& file = files_.at(id_of());
      apply_whole(file.seen, record);
      file.since.push_back(record);
      return;
    }
    case 'r': {
      const Name from = name_of(record.path), to = name_of(record.other_path);
      const int64_t exchanged = (record.offset & 2) != 0 ? find(record.other_path) : 0;  // RENAME_EXCHANGE
      return change({{from, exchanged}, {to, find(record.path)}});
    }
    case 'l':
      return change({{name_of(record.other_path), find(record.path)}});
    case 'u':
      return change({{name_of(record.path), 0}});
    case 's':
      return sync(record.path == directory_ ? 0 : id_of());
    case 'o':
      return;  // of the user
    default:
      throw std::runtime_error(fmt::format("unknown record {}", record.operation));
  }
}

Files DiskModel::seen() const {
  Files files;
  const std::function<void(int64_t, const std::string&)> add = [&](int64_t id, const std::string& prefix) {
    for (auto at = names_.lower_bound({id, ""}); at != names_.end() && at->first.directory == id; ++at) {
      const File& file = files_.at(at->second);
      const std::string path = prefix + at->first.name;
      if (file.directory)
        add(at->second, path + "/");
      else
        files[path] = file.seen;
    }
  };
  add(0, "");
  return files;
}

std::string DiskModel::content_after_cut(const File& file, std::mt19937_64& random) const {
  std::string content = file.on_disk;
  const std::array<std::size_t, 3> sizes = {1, 512, 4096};
  switch (random() % 4) {
    case 0:
      return content;
    case 1:
      return file.seen;
    case 2: {  // in order, up to somewhere
      const std::size_t whole = random() % (file.since.size() + 1);
      for (std::size_t i = 0; i < whole; ++i) apply_whole(content, file.since[i]);
      if (whole == file.since.size() || file.since[whole].operation != 'w') return content;
      const Record& torn = file.since[whole];
      const std::size_t block = sizes[random() % 3];
      write_at(content, static_cast<std::size_t>(torn.offset), torn.data, 0,
               random() % (torn.data.size() + 1) / block * block);
      return content;
    }
    default:
      break;
  }
  const std::size_t block = sizes[1 + random() % 2];
  for (const Record& record : file.since) {
    if (record.operation != 'w') {
      if (random() % 2 == 0) apply_whole(content, record);
      continue;
    }
    const auto offset = static_cast<std::size_t>(record.offset);
    for (std::size_t at = 0; at < record.data.size();) {
      const std::size_t count = std::min(block - (offset + at) % block, record.data.size() - at);
      if (random() % 2 == 0) write_at(content, offset, record.data, at, count);
      at += count;
    }
  }
  if (random() % 2 == 0) content.resize(std::max(content.size(), file.seen.size()));  // the size came first
  return content;
}

void DiskModel::write_state(std::mt19937_64& random, const std::string& out) const {
  Names names;
  const bool journal = random() % 2 == 0;
  const std::size_t end = in_journal_ + random() % (changes_.size() - in_journal_ + 1);
  const uint64_t quarters = random() % 5;  // of the changes that are not synced
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    if (journal ? i >= end : !changes_[i].on_disk && random() % 4 >= quarters) continue;
    for (const auto& [name, id] : changes_[i].set) {
      if (id == 0)
        names.erase(name);
      else
        names[name] = id;
    }
  }
  std::map<int64_t, std::string> contents;  // of files with several names: the same
  const std::function<void(int64_t, const fs::path&)> write = [&](int64_t id, const fs::path& path) {
    fs::create_directory(path);
    for (auto at = names.lower_bound({id, ""}); at != names.end() && at->first.directory == id; ++at) {
      const File& file = files_.at(at->second);
      if (file.directory) {
        write(at->second, path / at->first.name);
        continue;
      }
      const auto [content, isnew] = contents.try_emplace(at->second);
      if (isnew) content->second = content_after_cut(file, random);
      write_file(path / at->first.name, content->second);
    }
  };
  write(0, out);
}

}  // namespace sailor::power_cut
