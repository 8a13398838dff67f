#include "trainer/data/tokenize/encoded_text.h"

#include <algorithm>
#include <string>

namespace sailor {
namespace {

using Tokens = std::vector<int>;

std::size_t common_tokens(const Tokens& a, const Tokens& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}
std::size_t common_last_tokens(const Tokens& a, const Tokens& b) {
  return static_cast<std::size_t>(std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first -
                                  a.rbegin());
}

// Where the tokens of an answer begin: the first that the tokens of the text before it have not. A token
// across the boundary is part of the answer.
std::size_t first_token(const Tokens& tokens, const Tokens& before) {
  return common_tokens(before, tokens);
}

// Behind the tokens of an answer; a token across the boundary is part of it.
std::size_t last_token(const std::string& text, std::size_t end, const Tokens& tokens,
                       const Tokenizer& tokenizer) {
  if (end == text.size()) return tokens.size();
  Tokens until, behind;
  tokenizer.encode_inner(text.substr(0, end), until);
  if (common_tokens(until, tokens) == until.size()) return until.size();
  tokenizer.encode_inner(text.substr(end), behind);
  return tokens.size() - common_last_tokens(behind, tokens);
}

EncodedText encode_conversation(const TextChunk& chunk, const Tokenizer& tokenizer,
                                const ChatTemplate& chat) {
  const ConversationText conversation = chat.render(chunk.text, chunk.where);
  EncodedText encoded;
  encoded.text_bytes = conversation.text.size();
  tokenizer.encode_inner(conversation.text, encoded.tokens);
  std::size_t done = 0;
  for (const ByteRange& answer : conversation.answers) {
    Tokens before;
    tokenizer.encode_inner(conversation.text.substr(0, answer.begin), before);
    const std::size_t begin = std::max(done, first_token(encoded.tokens, before));
    const std::size_t end = last_token(conversation.text, answer.end, encoded.tokens, tokenizer);
    if (begin < end) encoded.answers.emplace_back(begin, end);
    done = std::max(done, end);
  }
  return encoded;
}

}  // namespace

EncodedText encode_chunk(const TextChunk& chunk, const Tokenizer& tokenizer, const ChatTemplate* chat) {
  if (chunk.is_conversation) return encode_conversation(chunk, tokenizer, *chat);
  EncodedText encoded;
  encoded.text_bytes = chunk.text.size();
  tokenizer.encode(chunk.text, encoded.tokens);
  const int end = tokenizer.end_of_document();
  const bool ended = !encoded.tokens.empty() && encoded.tokens.back() == end;
  if (chunk.ends_document && end >= 0 && !ended) encoded.tokens.push_back(end);
  Tokens prompt;
  if (chunk.prompt_bytes > 0) tokenizer.encode(chunk.text.substr(0, chunk.prompt_bytes), prompt);
  encoded.answers.emplace_back(first_token(encoded.tokens, prompt), encoded.tokens.size());
  return encoded;
}

}  // namespace sailor
