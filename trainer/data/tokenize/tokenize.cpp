#include "trainer/data/tokenize/tokenize.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <optional>
#include <thread>

#include "planner/spec/error.h"
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

struct Encoded {
  std::vector<int> tokens;
  std::size_t prompt_tokens = 0;  // of an example
};

// An example is encoded as one text. Its prompt are the tokens that it has in common with its prompt alone: a
// token across the boundary is part of the answer.
Encoded encode(const TextChunk& chunk, const Tokenizer& tokenizer) {
  Encoded encoded;
  tokenizer.encode(chunk.text, encoded.tokens);
  const int end = tokenizer.end_of_document();
  const bool ended = !encoded.tokens.empty() && encoded.tokens.back() == end;
  if (chunk.ends_document && end >= 0 && !ended) encoded.tokens.push_back(end);
  if (chunk.prompt_bytes == 0) return encoded;
  std::vector<int> prompt;
  tokenizer.encode(chunk.text.substr(0, chunk.prompt_bytes), prompt);
  const auto differ =
      std::mismatch(prompt.begin(), prompt.end(), encoded.tokens.begin(), encoded.tokens.end());
  encoded.prompt_tokens = static_cast<std::size_t>(differ.first - prompt.begin());
  return encoded;
}

// The tokens of each chunk, computed on all cores.
std::vector<Encoded> encode_all(const std::vector<TextChunk>& chunks, const Tokenizer& tokenizer,
                                std::size_t threads) {
  std::vector<Encoded> tokens(chunks.size());
  std::vector<std::exception_ptr> errors(threads);
  std::atomic<std::size_t> next = 0;
  auto work = [&](std::size_t thread) {
    try {
      for (std::size_t i = next++; i < chunks.size(); i = next++) tokens[i] = encode(chunks[i], tokenizer);
    } catch (...) {
      errors[thread] = std::current_exception();
    }
  };
  std::vector<std::thread> workers;
  for (std::size_t thread = 1; thread < threads; ++thread) workers.emplace_back(work, thread);
  work(0);
  for (std::thread& worker : workers) worker.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return tokens;
}

}  // namespace

TokenizeResult tokenize(const TokenizeOptions& options, const Tokenizer& tokenizer,
                        const std::function<void(int64_t, int64_t)>& progress) {
  TextOptions text{.text_key = options.text_key, .examples = options.sft};
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
    std::vector<Encoded> tokens = encode_all(chunks, tokenizer, threads);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      TokenWriter& writer = validation && chunks[i].after_split ? *validation : train;
      if (options.sft) {
        const auto answer = tokens[i].tokens.begin() + static_cast<std::ptrdiff_t>(tokens[i].prompt_tokens);
        writer.write({tokens[i].tokens.begin(), answer});
        writer.end_prompt();
        tokens[i].tokens.erase(tokens[i].tokens.begin(), answer);
      }
      writer.write(tokens[i].tokens);
      if (chunks[i].ends_document) writer.end_document();
      text_bytes += static_cast<int64_t>(chunks[i].text.size());
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
