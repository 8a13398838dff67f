// The records of a JSONL file.
#pragma once

#include <fstream>

#include "trainer/data/tokenize/record_file.h"

namespace sailor {

class JsonLines final : public RecordFile {
 public:
  JsonLines(const std::string& path, const std::string& form)
      : path_(path), form_(form), in_(path, std::ios::binary) {}
  bool next(DataRecord& record) override;

 private:
  std::string path_, form_;
  std::ifstream in_;
  int64_t position_ = 0;
  int line_ = 0;
};

}  // namespace sailor
