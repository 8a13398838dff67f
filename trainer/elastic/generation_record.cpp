#include "trainer/elastic/generation_record.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

double rounded_s(double seconds) {
  return std::round(seconds * 1e4) / 1e4;
}

Json identity(const JobProcess& process) {
  return {{"node", process.hello.place},
          {"gpu", process.hello.gpu},
          {"pid", process.hello.pid},
          {"start_ticks", process.hello.start_ticks}};
}

Started GenerationRecord::first() const {
  const auto it = std::find_if(started_.begin(), started_.end(),
                               [](const auto& process) { return process.second.rank == 0; });
  return it == started_.end() ? Started{} : it->second;
}

Json GenerationRecord::running(int number, const GenerationChange& change, const Roster& roster,
                               const std::set<int>& working, int64_t steps_lost) {
  double groups_s = 0, state_s = 0, both_s = 0;
  int64_t bytes = 0;
  Json kept = Json::array(), joined = Json::array(), lost = Json::array();
  bool all_kept = true;
  for (const auto& [id, started] : started_) {
    if (!working.contains(id)) continue;  // it only sent its state
    groups_s = std::max(groups_s, started.groups_s);
    state_s = std::max(state_s, started.state_s);
    both_s = std::max(both_s, started.groups_s + started.state_s);
    bytes += started.bytes_received;
    Json who = identity(roster.at(id));
    who["device_contexts"] = started.device_contexts;
    (known_as_.contains(id) ? kept : joined).push_back(who);
    const Identity now{started.start_ticks, started.device_contexts};
    const auto [known, is_new] = known_as_.try_emplace(id, now);
    all_kept = all_kept && known->second == now && started.start_ticks == roster.at(id).hello.start_ticks;
    known->second = now;
  }
  for (const int id : change.lost) lost.push_back(identity(roster.at(id)));

  const Started rank_0 = first();
  Json details = {{"generation", number},
                  {"why", change.reasons},
                  {"ranks", working.size()},
                  {"steps_done", rank_0.steps_done},
                  {"state_from", rank_0.state_from}};
  if (number > 1) {
    details["steps_lost"] = steps_lost;
    details["attempts"] = change.attempts;
    details["cleanup_s"] = rounded_s(change.idle_s - change.detected_s);
    details["plan_s"] = rounded_s(change.plan_s);
    details["broadcast_s"] = rounded_s(std::max(0.0, change.running_s - change.sent_s - both_s));
    details["groups_s"] = rounded_s(groups_s);
    details["state_s"] = rounded_s(state_s);
    details["bytes_received"] = bytes;
    details["resume_s"] = rounded_s(change.running_s - change.detected_s);
    details["pids_kept"] = all_kept;
    details["lost"] = lost;
  }
  details["kept"] = kept;
  details["joined"] = joined;
  return details;
}

}  // namespace sailor
