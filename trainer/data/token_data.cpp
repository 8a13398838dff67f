#include "trainer/data/token_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "planner/spec/error.h"
#include "trainer/data/blend.h"
#include "trainer/data/permutation.h"

namespace sailor {
namespace {

constexpr int64_t kSample = 4096;  // sequences of a training whose documents are counted

}  // namespace

struct TokenData::Impl {
  int64_t global_batch;
  int64_t sequence;
  int64_t vocabulary;
  bool document_mask, sft;
  uint64_t seed;
  std::vector<TokenSource> sources;
  std::vector<double> weights;  // of the sources
  Blend blend;

  Impl(const JobSpec& job, std::vector<double> source_weights)
      : global_batch(job.training.global_batch),
        sequence(job.model.sequence),
        vocabulary(job.model.vocabulary),
        document_mask(masks_documents(job)),
        sft(job.training.task == Task::sft),
        seed(job.training.seed),
        weights(std::move(source_weights)),
        blend(weights, seed) {}

  // The window of a source's sample: every epoch of its windows is another permutation.
  int64_t window(std::size_t source, int64_t sample) const {
    const int64_t windows = sources[source].windows(), epoch = sample / windows;
    const Permutation order(
        static_cast<uint64_t>(windows),
        seed * 0x100000001b3u + static_cast<uint64_t>(epoch) + (static_cast<uint64_t>(source) << 40));
    return static_cast<int64_t>(order(static_cast<uint64_t>(sample % windows)));
  }

  static TokenSource::Options options(const JobSpec& job, const std::string& key) {
    return {key,
            job.where(key),
            job.model.sequence,
            job.model.vocabulary,
            masks_documents(job),
            job.training.task == Task::sft};
  }
  static bool masks_documents(const JobSpec& job) {
    return job.data.document_mask || job.training.task == Task::sft;
  }
};

TokenData::TokenData(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TokenData::TokenData(TokenData&&) noexcept = default;
TokenData& TokenData::operator=(TokenData&&) noexcept = default;
TokenData::~TokenData() = default;

TokenData TokenData::open(const JobSpec& job) {
  const std::vector<DataSource>& train = job.data.train;
  if (train.empty())
    throw InputError(Where{job.file, 0}, "data.train: missing; name the token files to train on");
  std::vector<double> weights;
  for (const DataSource& source : train) weights.push_back(source.weight);
  auto impl = std::make_unique<Impl>(job, weights);
  for (std::size_t i = 0; i < train.size(); ++i) {
    const std::string item = fmt::format("data.train[{}]", i);
    if (impl->blend.per_block(i) == 0)
      throw InputError(
          job.where(item + ".weight"),
          fmt::format("{}.weight: is less than one of {} sequences; remove the files, or give them a "
                      "larger weight",
                      item, Blend::kBlock));
    const std::string key = train.size() == 1 ? "data.train" : item + ".files";
    impl->sources.emplace_back(train[i].files, job.data, Impl::options(job, key));
  }
  return TokenData(std::move(impl));
}

TokenData TokenData::open_validation(const JobSpec& job, const ValidationSet& set) {
  auto impl = std::make_unique<Impl>(job, std::vector<double>{1});
  const std::string key = set.name.empty() ? "data.validation" : "data.validation." + set.name;
  impl->sources.emplace_back(set.files, job.data, Impl::options(job, key));
  return TokenData(std::move(impl));
}

TokenData TokenData::in_memory(TokensInMemory tokens, const JobSpec& job) {
  auto impl = std::make_unique<Impl>(job, std::vector<double>{1});
  TokenSource::Options options = Impl::options(job, "tokens");
  options.where = {"memory", 0};
  impl->sources.emplace_back(std::move(tokens), std::move(options));
  return TokenData(std::move(impl));
}

TokenData TokenData::from_tokens(std::vector<uint16_t> tokens, int sequence, int64_t global_batch,
                                 int vocabulary, uint64_t seed) {
  JobSpec job;
  job.model.sequence = sequence;
  job.model.vocabulary = vocabulary;
  job.training.global_batch = global_batch;
  job.training.seed = seed;
  return in_memory({std::move(tokens)}, job);
}

TokenData::Place TokenData::place(int64_t step, int64_t index) const {
  const auto [source, sample] = impl_->blend.at(step * impl_->global_batch + index);
  return {source, impl_->window(source, sample)};
}

TokenData::Place TokenData::spread_place(int64_t index, int64_t of) const {
  const int64_t windows = impl_->sources[0].windows();
  return {0, windows / of * index + windows % of * index / of};
}

std::vector<int64_t> TokenData::tokens(const Place& place) const {
  return impl_->sources[place.source].window(place.window);
}

SequenceLayout TokenData::layout(const Place& place) const {
  return impl_->sources[place.source].layout(place.window);
}

bool TokenData::whole_sequences() const {
  return !impl_->document_mask;
}

int64_t TokenData::counted_targets(int64_t step) const {
  if (whole_sequences()) return impl_->global_batch * impl_->sequence;
  int64_t targets = 0;
  for (int64_t index = 0; index < impl_->global_batch; ++index)
    targets += layout(place(step, index)).counted_targets();
  return std::max<int64_t>(1, targets);
}

double TokenData::unigram_entropy(int64_t most) const {
  const double sum = std::accumulate(impl_->weights.begin(), impl_->weights.end(), 0.0);
  const auto sources = static_cast<int64_t>(impl_->sources.size());
  std::vector<double> frequencies(static_cast<std::size_t>(impl_->vocabulary));
  for (std::size_t i = 0; i < impl_->sources.size(); ++i) {
    const TokenSource& source = impl_->sources[i];
    const int64_t stride = std::max<int64_t>(1, source.tokens() / std::max<int64_t>(1, most / sources));
    std::vector<int64_t> counts(frequencies.size());
    int64_t total = 0;
    for (int64_t position = 0; position < source.tokens(); position += stride, ++total)
      ++counts[static_cast<std::size_t>(source.token(position))];
    for (std::size_t token = 0; token < counts.size(); ++token)
      frequencies[token] +=
          impl_->weights[i] / sum * static_cast<double>(counts[token]) / static_cast<double>(total);
  }
  double entropy = 0;
  for (const double p : frequencies) {
    if (p > 0) entropy -= p * std::log(p);
  }
  return entropy;
}

std::string TokenData::describe() const {
  std::set<std::string> formats;
  std::size_t files = 0;
  for (const TokenSource& source : impl_->sources) {
    formats.merge(source.formats());
    files += source.num_files();
  }
  std::string text = fmt::format("{}{} file{}, {} tokens",
                                 formats.empty() ? "" : fmt::format("{}: ", fmt::join(formats, ", ")), files,
                                 files == 1 ? "" : "s", num_tokens());
  if (impl_->sources.size() > 1) {
    std::vector<std::string> shares;
    for (std::size_t i = 0; i < impl_->sources.size(); ++i)
      shares.push_back(
          fmt::format("{:.4g} %", 100.0 * static_cast<double>(impl_->blend.per_block(i)) / Blend::kBlock));
    text += fmt::format(", blended {}", fmt::join(shares, ", "));
  }
  if (whole_sequences()) return text;
  int64_t tokens = 0, documents = 0, targets = 0;
  for (int64_t index = 0; index < kSample; ++index) {
    const SequenceLayout sequence = layout(place(0, index));
    tokens += impl_->sequence;
    documents += static_cast<int64_t>(sequence.documents.size());
    targets += sequence.counted_targets();
  }
  text += fmt::format(", in documents of {:.0f} tokens",
                      static_cast<double>(tokens) / static_cast<double>(documents));
  if (!impl_->sft) return text;
  return text + fmt::format(", {:.0f} % answers",
                            100.0 * static_cast<double>(targets) / static_cast<double>(tokens));
}

std::map<int64_t, int64_t> TokenData::document_lengths() const {
  if (whole_sequences()) return {{impl_->sequence, 1}};
  std::map<int64_t, int64_t> lengths;
  for (int64_t index = 0; index < kSample; ++index) {
    for (const int64_t length : layout(place(0, index)).documents) ++lengths[length];
  }
  return lengths;
}

int64_t TokenData::num_tokens() const {
  int64_t tokens = 0;
  for (const TokenSource& source : impl_->sources) tokens += source.tokens();
  return tokens;
}
int64_t TokenData::num_windows() const {
  int64_t windows = 0;
  for (const TokenSource& source : impl_->sources) windows += source.windows();
  return windows;
}

}  // namespace sailor
