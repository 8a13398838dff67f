// What a power cut may leave of a directory, from a recording of the changes that programs made in it
// (recorder.c).
//
// Data of a file is on the disk after an fsync of the file. Of every later write, any part may be there:
// none, all, the writes up to a byte or a block, or any set of blocks of 512 or 4096 bytes, with zeros
// between them (T. S. Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014, sections 2 and 3;
// crash states of CrashMonkey, J. Mohan et al., OSDI 2018, are those of a fraction of these). Names follow
// one of two models:
//
//   posix     A name is on the disk after an fsync of its directory (fsync(2): that of the file is not
//   enough). Of the
//             changes since then any subset is; a rename is there whole or not at all.
//   journal   As on ext4 (data=ordered) and XFS: names change in order, in one log. An fsync of a file or
//   directory
//             puts all changes up to the last one that concerns it on the disk. A rename does not wait for
//             the data.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace sailor::power_cut {

struct Record {
  char operation = 0;  // recorder.c
  int64_t inode = 0, offset = 0;
  std::string path, other_path, data;
};
std::vector<Record> read_recording(const std::string& file);
// Adds what a program said, between its changes.
void record_output(const std::string& recording, std::string_view text);

enum class Ignored { nothing, file_syncs, directory_syncs };  // to see that a test notices it

// By path, relative to the directory; directories have no entry.
using Files = std::map<std::string, std::string>;

class DiskModel {
 public:
  DiskModel(std::string directory, Ignored ignored) : directory_(std::move(directory)), ignored_(ignored) {}

  // Throws std::runtime_error for a record that does not fit what came before it.
  void apply(const Record& record);
  // What programs see, in which nothing is lost.
  Files seen() const;
  // What a power cut after the last record leaves, written into the new directory `out`.
  void write_state(std::mt19937_64& random, const std::string& out) const;

 private:
  struct Name {  // of a directory, which is that of the inode
    int64_t directory;
    std::string name;
    auto operator<=>(const Name&) const = default;
  };
  using Names = std::map<Name, int64_t>;
  struct NameChange {
    std::vector<std::pair<Name, int64_t>> set;  // 0: removed
    bool on_disk = false;
  };
  struct File {
    bool directory = false;
    std::string seen, on_disk;
    std::vector<Record> since;  // writes after the last fsync
  };

  int64_t find(const std::string& path) const;
  Name name_of(const std::string& path) const;
  void change(std::vector<std::pair<Name, int64_t>> set);
  void sync(int64_t inode);
  std::string content_after_cut(const File& file, std::mt19937_64& random) const;

  const std::string directory_;
  const Ignored ignored_;
  std::map<int64_t, int64_t> ids_;  // of inodes, whose numbers are used again
  std::map<int64_t, File> files_;   // by id; 0 is the directory itself
  int64_t next_id_ = 1;
  Names names_;
  std::vector<NameChange> changes_;
  std::size_t in_journal_ = 0;  // changes on the disk
};

}  // namespace sailor::power_cut
