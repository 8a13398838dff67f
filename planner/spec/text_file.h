// Reading and writing whole text files and directories of them, with errors that say what to do.
#pragma once

#include <string>
#include <string_view>

namespace sailor {

// No input file of the project is anywhere near this large.
inline constexpr size_t kMaxTextFileBytes = 64u << 20;

// Contents of a UTF-8 text file. Throws InputError when it is missing, unreadable, a directory, larger than
// kMaxTextFileBytes, or not text.
std::string read_text_file(const std::string& path);

// Throws InputError (with the line) unless `text` is UTF-8 without NUL bytes. `file_name` is for the message.
void require_text(std::string_view text, const std::string& file_name);

// Writes through a temporary file in the same directory, fsync and rename, and syncs the directory: readers
// see the old or the new content, never a part, also after a power cut, and the new one once it has returned.
// Targets that are not regular files (a pipe, /dev/stdout) are written directly. Throws std::runtime_error
// naming the path and the reason.
void write_file_atomically(const std::string& path, std::string_view contents);

// Puts new, renamed and removed names in a directory on the disk. Does nothing on file systems that cannot.
// Throws std::runtime_error.
void sync_directory(const std::string& path);

// Creates a directory with its missing parents, and puts their names on the disk. Throws std::runtime_error.
void create_directories_on_disk(const std::string& path);

// Renames the directory `made` to `path`, in the same directory, and puts the names on the disk. An older
// `path` is exchanged with it in one step: readers, and a power cut, find one of the two. Where the file
// system cannot exchange directories, the older one is first renamed to `aside`. Returns the older one's new
// name, for the caller to remove; empty if there was none. Throws std::runtime_error.
std::string replace_directory(const std::string& made, const std::string& path, const std::string& aside);

// `path` itself if absolute, else relative to the directory of `base_file`.
std::string relative_to_file(const std::string& path, const std::string& base_file);

}  // namespace sailor
