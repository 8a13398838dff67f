#include "trainer/data/token_source.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

namespace sailor {
namespace {

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  const int rc = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (rc != 0) paths.clear();
  // Indices are read with the files that they belong to.
  std::erase_if(paths, [](const std::string& path) { return path.ends_with(".idx"); });
  return paths;  // glob sorts
}

// Files by path or glob. What Megatron calls a prefix lacks `.bin`.
std::vector<std::string> expand(std::filesystem::path pattern, const std::string& key, const Where& where) {
  if (pattern.is_relative()) pattern = std::filesystem::path(where.file).parent_path() / pattern;
  std::vector<std::string> paths = matches(pattern);
  if (paths.empty()) paths = matches(pattern.string() + ".bin");
  if (paths.empty())
    throw InputError(
        where,
        fmt::format("{}: no file matches {}; give a path or a glob, absolute or relative to the job spec",
                    key, pattern.string()));
  return paths;
}

}  // namespace

TokenSource::TokenSource(const std::string& pattern, const std::string& format, Options options)
    : options_(std::move(options)) {
  for (const std::string& path : expand(pattern, options_.key, options_.where)) {
    files_.push_back(TokenFile::open(path, format, options_.key));
    if (options_.document_mask) files_.back().require_documents(options_.key);
    tokens_ += files_.back().tokens();
    file_ends_.push_back(tokens_);
  }
  finish();
}

TokenSource::TokenSource(std::vector<uint16_t> tokens, std::vector<int64_t> document_starts, Options options)
    : options_(std::move(options)),
      memory_(std::move(tokens)),
      memory_document_starts_(std::move(document_starts)),
      tokens_(static_cast<int64_t>(memory_.size())) {
  finish();
}

void TokenSource::finish() {
  windows_ = tokens_ > 0 ? (tokens_ - 1) / options_.sequence : 0;
  if (windows_ < 1) {
    throw InputError(
        options_.where,
        fmt::format("{}: {} tokens are fewer than one sequence of {} + 1; give more text or a shorter "
                    "model.sequence",
                    options_.key, tokens_, options_.sequence));
  }
}

std::set<std::string> TokenSource::formats() const {
  std::set<std::string> formats;
  for (const TokenFile& file : files_) formats.insert(file.format());
  return formats;
}

std::pair<std::size_t, int64_t> TokenSource::place(int64_t position) const {
  const auto file = static_cast<std::size_t>(
      std::upper_bound(file_ends_.begin(), file_ends_.end(), position) - file_ends_.begin());
  return {file, position - (file == 0 ? 0 : file_ends_[file - 1])};
}

void TokenSource::read(int64_t position, int64_t count, int64_t* out) const {
  const int64_t first = position;
  int64_t* const begin = out;
  if (files_.empty()) {
    std::copy_n(memory_.begin() + position, count, out);
    out += count;
  }
  while (count > 0 && !files_.empty()) {
    const auto [file, offset] = place(position);
    const int64_t run = std::min(count, files_[file].tokens() - offset);
    files_[file].read(offset, run, out);
    position += run;
    out += run;
    count -= run;
  }
  for (const int64_t* token = begin; token != out; ++token) {
    if (*token >= 0 && *token < options_.vocabulary) continue;
    throw InputError(where_of(first + (token - begin)),
                     fmt::format("{}: token {} is outside model.vocabulary {}; was the file made with "
                                 "another tokenizer, or has it another data.format?",
                                 options_.key, *token, options_.vocabulary));
  }
}

Where TokenSource::where_of(int64_t position) const {
  if (files_.empty()) return {"memory, token " + std::to_string(position), 0};
  const auto [file, offset] = place(position);
  return {fmt::format("{}, token {}", files_[file].path(), offset), 0};
}

std::vector<int64_t> TokenSource::window(int64_t index) const {
  std::vector<int64_t> tokens(static_cast<std::size_t>(options_.sequence) + 1);
  read(index * options_.sequence, options_.sequence + 1, tokens.data());
  return tokens;
}

std::vector<int64_t> TokenSource::document_starts(int64_t first, int64_t end) const {
  std::vector<int64_t> starts;
  if (files_.empty())
    std::copy_if(memory_document_starts_.begin(), memory_document_starts_.end(), std::back_inserter(starts),
                 [&](int64_t start) { return start >= first && start < end; });
  while (first < end && !files_.empty()) {
    const auto [file, offset] = place(first);
    const int64_t begin = first - offset;  // of the file
    if (offset == 0) starts.push_back(begin);
    for (const int64_t start : files_[file].document_starts(offset, end - begin)) {
      if (start > 0) starts.push_back(begin + start);
    }
    first = file_ends_[file];
  }
  return starts;
}

SequenceLayout TokenSource::layout(int64_t index) const {
  const int64_t length = options_.sequence, first = index * length;
  SequenceLayout layout;
  int64_t begin = 0;  // of the document, in the window
  const auto ends = [&](int64_t end) {
    if (begin < std::min(end, length)) layout.documents.push_back(std::min(end, length) - begin);
    if (begin + 1 < end) layout.counted.emplace_back(begin, end - 1);
    begin = end;
  };
  if (options_.document_mask) {
    for (const int64_t start : document_starts(first + 1, first + length + 1)) ends(start - first);
  }
  ends(length + 1);
  return layout;
}

int64_t SequenceLayout::counted_targets() const {
  int64_t targets = 0;
  for (const auto& [first, end] : counted) targets += end - first;
  return targets;
}

int64_t TokenSource::token(int64_t position) const {
  int64_t token = 0;
  read(position, 1, &token);
  return token;
}

}  // namespace sailor
