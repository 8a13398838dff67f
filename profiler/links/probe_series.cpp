#include "profiler/links/probe_series.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace sailor {
namespace {

using Scope = NetworkProfile::Scope;

struct Node {
  LinkEnd kind{.gpu_type = "", .zone = "", .gpus = 0};
  std::vector<int> ranks;
};

bool alike(const LinkEnd& a, const LinkEnd& b) {
  return a.gpu_type == b.gpu_type && a.zone == b.zone;
}

std::string name_of(const LinkEnd& kind) {
  return kind.zone.empty() ? kind.gpu_type : kind.gpu_type + " in " + kind.zone;
}

// Nodes by name in the order of their first ranks. A node whose ranks are of several kinds counts as several.
std::vector<Node> nodes_of(const std::vector<ProbeRank>& ranks, Transport transport) {
  std::vector<Node> nodes;
  std::map<std::tuple<std::string, std::string, std::string>, size_t> index;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const ProbeRank& r = ranks[rank];
    if (transport == Transport::nccl && !r.gpu) continue;
    const auto [it, added] = index.try_emplace({r.node, r.gpu_type, r.zone}, nodes.size());
    if (added) nodes.push_back({{.gpu_type = r.gpu_type, .zone = r.zone, .gpus = 0}, {}});
    nodes[it->second].ranks.push_back(static_cast<int>(rank));
  }
  return nodes;
}

// The nodes of each kind, those with most ranks first.
std::vector<std::vector<const Node*>> kinds_of(const std::vector<Node>& nodes) {
  std::vector<std::vector<const Node*>> kinds;
  for (const Node& node : nodes) {
    auto kind = std::find_if(kinds.begin(), kinds.end(),
                             [&](const auto& k) { return alike(k.front()->kind, node.kind); });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {{}});
    kind->push_back(&node);
  }
  for (auto& kind : kinds) {
    std::stable_sort(kind.begin(), kind.end(),
                     [](const Node* a, const Node* b) { return a->ranks.size() > b->ranks.size(); });
  }
  return kinds;
}

std::vector<int> joined(std::vector<int> senders, const std::vector<int>& receivers) {
  senders.insert(senders.end(), receivers.begin(), receivers.end());
  return senders;
}

ProbeSeries messages(const Node& from, const Node& to, Scope scope, std::vector<int> members) {
  ProbeSeries series;
  series.members = std::move(members);
  series.from = from.kind;
  series.to = to.kind;
  series.scope = scope;
  return series;
}

// Between single GPUs of all kinds, then between all of them at once.
void add_messages(const std::vector<std::vector<const Node*>>& kinds, bool at_once,
                  std::vector<ProbeSeries>& all) {
  for (const auto& kind : kinds) {
    const Node& node = *kind.front();
    const size_t n = node.ranks.size();
    if (!at_once && n >= 2) {  // the farthest, as GPUs are numbered
      all.push_back(messages(node, node, Scope::intra_node, {node.ranks.front(), node.ranks.back()}));
    } else if (at_once && n >= 4) {
      std::vector<int> senders, receivers;
      for (size_t i = 0; i + 1 < n; i += 2) {
        senders.push_back(node.ranks[i]);
        receivers.push_back(node.ranks[i + 1]);
      }
      all.push_back(messages(node, node, Scope::intra_node, joined(senders, receivers)));
    }
  }
  for (size_t a = 0; a < kinds.size(); ++a) {
    for (size_t b = a; b < kinds.size(); ++b) {
      if (a == b && kinds[a].size() < 2) continue;
      const Node& from = *kinds[a].front();
      const Node& to = a == b ? *kinds[a][1] : *kinds[b].front();
      const auto k = static_cast<std::ptrdiff_t>(at_once ? std::min(from.ranks.size(), to.ranks.size()) : 1);
      if (at_once && k < 2) continue;
      const std::vector<int> there(from.ranks.begin(), from.ranks.begin() + k),
          here(to.ranks.begin(), to.ranks.begin() + k);
      all.push_back(messages(from, to, Scope::inter_node, joined(there, here)));
      if (a != b) all.push_back(messages(to, from, Scope::inter_node, joined(here, there)));
    }
  }
}

void add_collectives(const std::vector<const Node*>& nodes, const std::vector<int>& members,
                     std::vector<ProbeSeries>& all) {
  if (members.size() < 2) return;
  std::map<std::string, int> counts;
  for (const int member : members) {
    for (const Node* node : nodes)
      counts[name_of(node->kind)] +=
          static_cast<int>(std::count(node->ranks.begin(), node->ranks.end(), member));
  }
  for (const char* operation : {"all_reduce", "reduce_scatter", "all_gather", "broadcast"}) {
    ProbeSeries series;
    series.operation = operation;
    series.members = members;
    for (const auto& [kind, count] : counts) series.kinds.push_back(fmt::format("{} x {}", count, kind));
    series.nodes = static_cast<int>(nodes.size());
    all.push_back(series);
  }
}

std::vector<ProbeSeries> series_over(Transport transport, const std::vector<ProbeRank>& ranks,
                                     bool collectives) {
  const std::vector<Node> nodes = nodes_of(ranks, transport);
  const auto kinds = kinds_of(nodes);
  std::vector<ProbeSeries> all;
  add_messages(kinds, false, all);
  add_messages(kinds, true, all);
  if (!collectives) return all;
  for (const auto& kind : kinds) add_collectives({kind.front()}, kind.front()->ranks, all);
  if (nodes.size() < 2) return all;
  std::vector<const Node*> every_node;
  std::vector<int> firsts, everybody;
  for (const Node& node : nodes) {
    every_node.push_back(&node);
    firsts.push_back(node.ranks.front());
    everybody.insert(everybody.end(), node.ranks.begin(), node.ranks.end());
  }
  add_collectives(every_node, firsts, all);
  if (everybody.size() > firsts.size()) add_collectives(every_node, everybody, all);
  return all;
}

}  // namespace

std::vector<ProbeSeries> probe_series(const std::vector<ProbeRank>& ranks, bool collectives,
                                      std::optional<Transport> only) {
  const bool gpus = std::any_of(ranks.begin(), ranks.end(), [](const ProbeRank& r) { return r.gpu; });
  std::vector<ProbeSeries> all;
  for (const Transport transport : {Transport::nccl, Transport::sockets}) {
    if (only.value_or(transport) != transport) continue;
    std::vector<ProbeSeries> some =
        series_over(transport, ranks, collectives && (transport == Transport::nccl || !gpus));
    for (ProbeSeries& series : some) {
      series.transport = transport;
      all.push_back(std::move(series));
    }
  }
  return all;
}

std::string describe(const ProbeSeries& series) {
  if (series.is_collective())
    return fmt::format("{} of {} on {} node{}, over {}", series.operation, fmt::join(series.kinds, " + "),
                       series.nodes, series.nodes > 1 ? "s" : "", name_of(series.transport));
  return fmt::format("{} to {}, {}, {}, over {}", name_of(series.from), name_of(series.to),
                     series.scope == Scope::intra_node ? "within a node" : "between nodes",
                     series.pairs() > 1 ? fmt::format("{} pairs at once", series.pairs()) : "one pair",
                     name_of(series.transport));
}

}  // namespace sailor
