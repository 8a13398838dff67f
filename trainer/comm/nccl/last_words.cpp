#include "trainer/comm/nccl/last_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sailor {

std::string to_string(const Doing& doing) {
  if (doing.idle()) return fmt::format("in no operation ({} collectives so far)", doing.collective);
  std::string text = fmt::format("in {}", doing.operation);
  if (doing.count > 0) text += fmt::format(" of {} {}", doing.count, to_string(doing.type));
  if (doing.root >= 0) text += fmt::format(" from member {}", doing.root);
  if (doing.to_all) text += fmt::format(" (collective {})", doing.collective);
  if (doing.stuck) text += ", inside a call of NCCL that does not return";
  return text;
}

LastWordsExchange::LastWordsExchange(std::unique_ptr<Communicator> between)
    : between_(std::move(between)), incoming_(static_cast<std::size_t>(between_->size())) {
  for (int peer = 0; peer < between_->size(); ++peer) {
    Incoming& from = incoming_[static_cast<std::size_t>(peer)];
    if (peer != between_->rank())
      from.work = between_->recv(&from.words, sizeof from.words, ElementType::u8, peer);
  }
}

LastWordsExchange::~LastWordsExchange() = default;

void LastWordsExchange::say(const LastWords& words) noexcept {
  if (std::exchange(spoken_, true)) return;
  outgoing_ = words;
  listen();
  for (int peer = 0; peer < between_->size(); ++peer) {
    const LastWords* const theirs = from(peer);
    if (peer == between_->rank()) continue;
    if (theirs && theirs->kind != LastWords::Kind::timed_out) continue;  // it did not ask, and is gone
    try {
      sends_.push_back(between_->send(&outgoing_, sizeof outgoing_, ElementType::u8, peer));
    } catch (const std::exception&) {  // it is gone, which others find out as well
    }
  }
}

bool LastWordsExchange::said() noexcept {
  listen();
  return lost_ || std::all_of(sends_.begin(), sends_.end(), [](const auto& work) { return work->done(); });
}

void LastWordsExchange::listen() noexcept {
  for (Incoming& from : incoming_) {
    if (!from.work || !from.work->done()) continue;
    from.work = nullptr;
    from.here = true;
  }
  if (lost_) return;
  try {
    between_->exchange({});  // throws when one of the receives has failed
  } catch (const CommError& error) {
    const std::vector<int>& ranks = between_->ranks();
    const auto peer = std::find(ranks.begin(), ranks.end(), error.peer());
    lost_ = {peer == ranks.end() ? -1 : static_cast<int>(peer - ranks.begin()), error.reason()};
  }
}

const LastWords* LastWordsExchange::from(int rank) const {
  const Incoming& from = incoming_[static_cast<std::size_t>(rank)];
  return from.here ? &from.words : nullptr;
}

}  // namespace sailor
