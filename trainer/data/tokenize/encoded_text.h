// The tokens of a chunk of text, and which of them are answers that fine-tuning learns.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "trainer/data/tokenize/chat_template.h"
#include "trainer/data/tokenize/text_reader.h"
#include "trainer/data/tokenize/tokenizer.h"

namespace sailor {

struct EncodedText {
  std::vector<int> tokens;
  std::vector<std::pair<std::size_t, std::size_t>> answers;  // [begin, end) of tokens, in order
  std::size_t text_bytes = 0;
};

// Pure. A document ends with the tokenizer's end of document, a conversation with what its template ends
// with. `chat` renders conversations; null if there are none. Throws InputError as ChatTemplate::render()
// does.
EncodedText encode_chunk(const TextChunk& chunk, const Tokenizer& tokenizer, const ChatTemplate* chat);

}  // namespace sailor
