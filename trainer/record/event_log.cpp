#include "trainer/record/event_log.h"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

namespace sailor {

void EventLog::write(const std::string& event, const nlohmann::ordered_json& details) {
  if (!kept_) return;
  const double now_s =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  nlohmann::ordered_json line = {{"time", std::round(now_s * 1e3) / 1e3}, {"event", event}};
  line.update(details);
  directory_.append_line("events.jsonl",
                         line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace sailor
