// The tokens of a shard in MosaicML's MDS format: a column of all samples, one after the other. A sample is a
// document. Tokens stay where they are in the file, and are converted when they are read.
//
// Opening reads the offsets of samples, and no values if these give the number of tokens: if only one column
// has a size that varies, as in what LLM Foundry writes. Values are checked when they are read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/mds/shard_file.h"
#include "trainer/data/token_array.h"
#include "trainer/data/token_element.h"

namespace sailor {

// Which column has the tokens, and how.
struct MdsTokenColumn {
  std::string name;                                // empty: `tokens` or `input_ids`
  TokenElement bytes_element = TokenElement::i64;  // of columns with the encoding `bytes`
};

class MdsTokens final : public TokenArray {
 public:
  // Throws InputError naming file or index: no such column, a column of something else, sizes that are no
  // multiple of a token's.
  MdsTokens(const MdsShard& shard, const MdsTokenColumn& column, const std::string& key);

  const std::string& path() const override { return file_.path(); }
  const std::string& format() const override;
  int64_t tokens() const override { return sample_start(file_.samples()); }
  void read(int64_t first, int64_t count, int64_t* out) const override;
  void require_documents(const std::string&) const override {}
  std::vector<int64_t> document_starts(int64_t first, int64_t end) const override;
  void require_answers(const std::string& key) const override;
  std::vector<TokenRange> answers(int64_t, int64_t) const override { return {}; }

 private:
  struct Values {
    TokenElement element;
    MdsFile::Bytes bytes;
    int axes = 1;

    int64_t count() const { return static_cast<int64_t>(bytes.size() / bytes_of(element)); }
  };

  void choose_column(const MdsTokenColumn& column);
  Values values(int64_t sample) const;
  Values array(int64_t sample, MdsFile::Bytes bytes) const;
  // Tokens of a sample from its size alone; -1 if it has another form.
  int64_t count_by_size(int64_t sample, int64_t other_bytes) const;
  void count_tokens();
  int64_t sample_start(int64_t sample) const;
  int64_t sample_of(int64_t token) const;  // the one that has it
  [[noreturn]] void fail_sample(int64_t sample, const std::string& what) const;

  MdsFile file_;
  std::size_t column_ = 0;
  bool array_ = false;                   // else `bytes`
  bool fixed_shape_ = false;             // of an array: not stored with it
  std::optional<TokenElement> element_;  // unless every array has its own
  int64_t each_ = 0;                     // tokens of every sample, unless there are `ends_`
  std::vector<uint32_t> ends_;           // tokens up to the end of each sample
};

}  // namespace sailor
