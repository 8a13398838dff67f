// Converts text files to token files (token_writer.h) for training and for validation.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/data/tokenize/chat_template.h"
#include "trainer/data/tokenize/tokenizer.h"

namespace sailor {

struct TokenizeOptions {
  std::vector<std::string> files;  // read in this order, each a document, or JSONL
  std::string directory;          // for train.bin, train.idx and the same of `validation`; created if missing
  double validation = 0.05;       // fraction at the end of the text for validation; 0 = none
  std::string text_key = "text";  // of the documents in JSONL files
  bool sft = false;               // files of examples, whose answers are marked
  const ChatTemplate* chat = nullptr;  // for examples that are conversations
};

struct TokenizeResult {
  int64_t text_bytes = 0;
  int64_t train_tokens = 0;
  int64_t validation_tokens = 0;
};

// Encodes on all cores, in memory that does not grow with the text, but for whole documents if the tokenizer
// needs them; `progress` gets the bytes done so far. Throws InputError when a file cannot be read or the text
// is empty.
TokenizeResult tokenize(const TokenizeOptions& options, const Tokenizer& tokenizer,
                        const std::function<void(int64_t done_bytes, int64_t total_bytes)>& progress);

}  // namespace sailor
