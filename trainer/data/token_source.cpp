#include "trainer/data/token_source.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "trainer/data/mds/token_shard.h"
#include "trainer/data/token_file.h"

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

TokenSource::TokenSource(const std::string& pattern, const DataSpec& data, Options options)
    : options_(std::move(options)) {
  for (const std::string& path : expand(pattern, options_.key, options_.where)) open(path, data);
  finish();
}

void TokenSource::open(const std::string& path, const DataSpec& data) {
  const bool mosaicml = data.format == "mosaicml";
  const std::filesystem::path place(path);
  const bool is_index = place.filename() == kMdsIndex && (mosaicml || data.format == "auto");
  const std::string directory = is_index ? place.parent_path().string() : path;
  if (data.format == "auto" && is_mds_shard(path))
    throw InputError(Where{path, 0}, options_.key + ": is a shard of a data set; name its directory");
  if (!mosaicml && !is_index && !(data.format == "auto" && is_mds_directory(directory))) {
    if (!data.column.empty())
      throw InputError(Where{path, 0}, "data.column: only MosaicML's format has columns; remove the key");
    return add(std::make_unique<TokenFile>(TokenFile::open(path, data.format, options_.key)));
  }
  if (!is_mds_directory(directory))
    throw InputError(Where{path, 0},
                     fmt::format("{}: no data set in MosaicML's format: there is no {}; name the directory "
                                 "that has it, or several of them by a glob",
                                 options_.key, kMdsIndex));
  const MdsTokenColumn column{data.column, *token_element(data.token_encoding_type)};
  for (const MdsShard& shard : read_mds_index(directory))
    add(std::make_unique<MdsTokens>(shard, column, options_.key));
}

void TokenSource::add(std::unique_ptr<const TokenArray> file) {
  if (options_.sft) {
    file->require_answers(options_.key);
  } else if (options_.document_mask) {
    file->require_documents(options_.key);
  }
  tokens_ += file->tokens();
  file_ends_.push_back(tokens_);
  files_.push_back(std::move(file));
}

TokenSource::TokenSource(TokensInMemory memory, Options options)
    : options_(std::move(options)),
      memory_(std::move(memory)),
      tokens_(static_cast<int64_t>(memory_.tokens.size())) {
  finish();
}

void TokenSource::finish() {
  if (options_.sft) {
    pack_documents();
    windows_ = static_cast<int64_t>(packed_.size());
  } else {
    windows_ = tokens_ > 0 ? (tokens_ - 1) / options_.sequence : 0;
  }
  if (windows_ < 1) {
    throw InputError(
        options_.where,
        fmt::format("{}: {} tokens are fewer than one sequence of {} + 1; give more text or a shorter "
                    "model.sequence",
                    options_.key, tokens_, options_.sequence));
  }
}

void TokenSource::pack_documents() {
  const int64_t most = int64_t{options_.sequence} + 1;
  std::vector<int64_t> starts = document_starts(0, tokens_);
  starts.push_back(tokens_);
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const int64_t end = std::min(starts[i + 1], starts[i] + most);
    if (packed_.empty() || end - packed_.back().first > most || packed_.back().second != starts[i]) {
      packed_.emplace_back(starts[i], end);
    } else {
      packed_.back().second = end;
    }
  }
}

TokenRange TokenSource::range(int64_t window) const {
  if (options_.sft) return packed_[static_cast<std::size_t>(window)];
  const int64_t first = window * options_.sequence;
  return {first, first + options_.sequence + 1};
}

std::set<std::string> TokenSource::formats() const {
  std::set<std::string> formats;
  for (const auto& file : files_) formats.insert(file->format());
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
    std::copy_n(memory_.tokens.begin() + position, count, out);
    out += count;
  }
  while (count > 0 && !files_.empty()) {
    const auto [file, offset] = place(position);
    const int64_t run = std::min(count, files_[file]->tokens() - offset);
    files_[file]->read(offset, run, out);
    position += run;
    out += run;
    count -= run;
  }
  for (const int64_t* token = begin; token != out; ++token) {
    if (*token >= 0 && *token < options_.vocabulary) continue;
    throw InputError(
        where_of(first + (token - begin)),
        fmt::format("{}: token {} is outside model.vocabulary {}; was the file made with "
                    "another tokenizer, or has it another {}?",
                    options_.key, *token, options_.vocabulary,
                    formats().contains("mosaicml") ? "data.token_encoding_type" : "data.format"));
  }
}

Where TokenSource::where_of(int64_t position) const {
  if (files_.empty()) return {"memory, token " + std::to_string(position), 0};
  const auto [file, offset] = place(position);
  return {fmt::format("{}, token {}", files_[file]->path(), offset), 0};
}

std::vector<int64_t> TokenSource::window(int64_t index) const {
  std::vector<int64_t> tokens(static_cast<std::size_t>(options_.sequence) + 1);
  const auto [first, end] = range(index);
  read(first, end - first, tokens.data());
  return tokens;
}

template <class Visit>
void TokenSource::for_files(int64_t first, int64_t end, const Visit& visit) const {
  while (first < end) {
    const auto [file, offset] = place(first);
    const int64_t begin = first - offset;
    visit(*files_[file], begin, TokenRange{offset, std::min(end - begin, files_[file]->tokens())});
    first = file_ends_[file];
  }
}

std::vector<int64_t> TokenSource::document_starts(int64_t first, int64_t end) const {
  std::vector<int64_t> starts;
  if (files_.empty()) {
    const std::vector<int64_t>& all = memory_.document_starts;
    starts.assign(std::lower_bound(all.begin(), all.end(), first),
                  std::lower_bound(all.begin(), all.end(), end));
    return starts;
  }
  for_files(first, end, [&](const TokenArray& file, int64_t begin, const TokenRange& range) {
    if (range.first == 0) starts.push_back(begin);
    for (const int64_t start : file.document_starts(range.first, range.second)) {
      if (start > 0) starts.push_back(begin + start);
    }
  });
  return starts;
}

std::vector<TokenRange> TokenSource::answers(int64_t first, int64_t end) const {
  std::vector<TokenRange> ranges;
  const auto add = [&](int64_t from, int64_t to) {
    if (std::max(from, first) < std::min(to, end))
      ranges.emplace_back(std::max(from, first), std::min(to, end));
  };
  if (files_.empty()) {
    for (const auto& [from, to] : memory_.answers) add(from, to);
    return ranges;
  }
  for_files(first, end, [&](const TokenArray& file, int64_t begin, const TokenRange& range) {
    for (const auto& [from, to] : file.answers(range.first, range.second)) add(begin + from, begin + to);
  });
  return ranges;
}

SequenceLayout TokenSource::layout(int64_t index) const {
  const int64_t length = options_.sequence;
  const TokenRange whole = range(index);
  const int64_t first = whole.first;
  SequenceLayout layout;
  int64_t begin = 0;  // of the document, in the window
  const auto ends = [&](int64_t end, bool filled) {
    if (begin < std::min(end, length)) layout.documents.push_back(std::min(end, length) - begin);
    if (!options_.sft && begin + 1 < end) layout.counted.emplace_back(begin, end - 1);
    if (options_.sft && !filled) {
      for (const auto& [from, to] : answers(first + begin + 1, first + end))
        layout.counted.emplace_back(from - first - 1, to - first - 1);
    }
    begin = end;
  };
  if (options_.document_mask) {
    for (const int64_t start : document_starts(first + 1, whole.second)) ends(start - first, false);
  }
  ends(whole.second - first, false);
  if (begin < length + 1) ends(length + 1, true);
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
