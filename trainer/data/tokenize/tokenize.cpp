#include "trainer/data/tokenize/tokenize.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <optional>
#include <thread>

#include "planner/spec/error.h"
#include "trainer/data/tokenize/encoded_text.h"
#include "trainer/data/tokenize/text_reader.h"
#include "trainer/data/tokenize/token_writer.h"

namespace sailor {
namespace {

constexpr std::size_t kMostChunkBytes = 1 << 13, kLeastChunkBytes = 64;  // longer ones take longer per byte
constexpr std::size_t kChunksPerThread = 64, kBatchBytes = 16 << 20;

// Chunks are what the text is split into training and validation by: small enough for the smaller part.
std::size_t chunk_bytes(int64_t total_bytes, double validation) {
  if (validation <= 0) return kMostChunkBytes;
  const double smaller = std::min(validation, 1 - validation) * static_cast<double>(total_bytes);
  return std::clamp(static_cast<std::size_t>(smaller / 4), kLeastChunkBytes, kMostChunkBytes);
}

// The tokens of each chunk, computed on all cores. An error is that of the first chunk that has one.
std::vector<EncodedText> encode_all(const std::vector<TextChunk>& chunks, const Tokenizer& tokenizer,
                                    const ChatTemplate* chat, std::size_t threads) {
  std::vector<EncodedText> encoded(chunks.size());
  std::vector<std::exception_ptr> errors(chunks.size());
  std::atomic<std::size_t> next = 0;
  auto work = [&] {
    for (std::size_t i = next++; i < chunks.size(); i = next++) {
      try {
        encoded[i] = encode_chunk(chunks[i], tokenizer, chat);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> workers;
  for (std::size_t thread = 1; thread < threads; ++thread) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return encoded;
}

void write_example(const EncodedText& encoded, TokenWriter& writer) {
  auto at = encoded.tokens.begin();
  for (const auto& [begin, end] : encoded.answers) {
    const auto answer = encoded.tokens.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto behind = encoded.tokens.begin() + static_cast<std::ptrdiff_t>(end);
    writer.write({at, answer});
    writer.end_prompt();
    writer.write({answer, behind});
    writer.end_answer();
    at = behind;
  }
  writer.write({at, encoded.tokens.end()});
}

}  // namespace

TokenizeResult tokenize(const TokenizeOptions& options, const Tokenizer& tokenizer,
                        const std::function<void(int64_t, int64_t)>& progress) {
  TextOptions text{
      .text_key = options.text_key, .examples = options.sft, .conversations = options.chat != nullptr};
  const int64_t total_bytes = TextReader(options.files, text).total_bytes();
  if (!tokenizer.needs_whole_documents() && !options.sft)
    text.chunk_bytes = chunk_bytes(total_bytes, options.validation);
  text.split_at = static_cast<int64_t>((1 - options.validation) * static_cast<double>(total_bytes));
  TextReader reader(options.files, text);

  std::filesystem::create_directories(options.directory);
  TokenWriter train(options.directory + "/train", tokenizer.vocabulary());
  std::optional<TokenWriter> validation;
  if (options.validation > 0) validation.emplace(options.directory + "/validation", tokenizer.vocabulary());

  const std::size_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<TextChunk> chunks;
  int64_t text_bytes = 0, done_bytes = 0;
  for (bool more = true; more;) {
    chunks.clear();
    std::size_t batch_bytes = 0;
    while (chunks.size() < threads * kChunksPerThread && batch_bytes < kBatchBytes && more) {
      TextChunk chunk;
      more = reader.next(chunk);
      if (!more) break;
      batch_bytes += chunk.text.size();
      chunks.push_back(std::move(chunk));
    }
    const std::vector<EncodedText> encoded = encode_all(chunks, tokenizer, options.chat, threads);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      TokenWriter& writer = validation && chunks[i].after_split ? *validation : train;
      if (options.sft)
        write_example(encoded[i], writer);
      else
        writer.write(encoded[i].tokens);
      if (chunks[i].ends_document) writer.end_document();
      text_bytes += static_cast<int64_t>(encoded[i].text_bytes);
      done_bytes = chunks[i].end_position;
    }
    progress(done_bytes, total_bytes);
  }
  if (text_bytes == 0) throw InputError("there is no text in these files");
  train.finish();
  if (validation) validation->finish();
  return {text_bytes, train.tokens(), validation ? validation->tokens() : 0};
}

}  // namespace sailor
