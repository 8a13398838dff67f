// A network profile as a file: the curves that the planner reads, and the measurements behind them, so that a
// person sees how sure they are and another run goes on where one ended. Value type.
//
// Two quantities are measured: messages between two ends, which become the curve of a link, and collectives,
// which are kept to hold predictions against. Every measurement is a median with its count of samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/profile/network_profile.h"

namespace sailor {

// One size of one thing.
struct NetworkMeasurement {
  int64_t bytes = 0;
  double seconds = 0;   // median
  int samples = 0;      // that count towards it
  double error = 0;     // half width of the 95 % confidence interval, relative to `seconds`
  int outliers = 0;     // samples above twice the median
  int pairs = 1;        // messages between so many pairs of GPUs at once; 1 in collectives
  bool precise = true;  // false: time was up before `error` was as small as wanted
};

struct NetworkFile {
  struct Link {
    LinkEnd from{.gpu_type = "", .zone = "", .gpus = 0}, to{.gpu_type = "", .zone = "", .gpus = 0};
    NetworkProfile::Scope scope = NetworkProfile::Scope::any;
    // The curve: points, or rates, or points with rates beside them (see network_profile.h). Without either
    // the link is being measured, and the planner does not see it.
    std::vector<std::pair<double, double>> points;  // bytes, seconds
    std::optional<double> latency_s;
    double bytes_per_s = 0;       // 0 = not given
    double node_bytes_per_s = 0;  // 0 = not given
    std::string measured;         // when, where, with what
    std::vector<NetworkMeasurement> messages;

    bool has_curve() const { return !points.empty() || bytes_per_s > 0; }
    LinkCurve curve() const;  // requires has_curve()
  };
  // All `ranks` ranks on `nodes` nodes take part; `bytes` of its measurements is the whole tensor.
  struct Collective {
    std::string operation;             // all_reduce, all_gather, reduce_scatter or broadcast
    std::vector<std::string> members;  // "4 x TYPE in ZONE", one for each kind of node
    int ranks = 0;
    int nodes = 0;
    std::string measured;
    std::vector<NetworkMeasurement> measurements;
  };

  std::string file;  // where it was read; empty for one that was made
  std::string measured;
  std::vector<Link> links;
  std::vector<Collective> collectives;

  // The entry for these ends, made when there is none. The reference is good until another one is made.
  Link& link(const LinkEnd& from, const LinkEnd& to, NetworkProfile::Scope scope);
  Collective& collective(const std::string& operation, const std::vector<std::string>& members, int ranks,
                         int nodes);
};

// Throw InputError with file and line.
NetworkFile load_network_file(const std::string& path);
NetworkFile parse_network_file(const std::string& json, const std::string& file_name);
std::string to_json(const NetworkFile& network);
// Atomically: a reader, or a crash, sees the old or the new file. Throws std::runtime_error.
void save_network_file(const NetworkFile& network, const std::string& path);

// The links that have a curve.
NetworkProfile to_profile(const NetworkFile& network);

const char* to_string(NetworkProfile::Scope scope);  // "any", "intra_node", "inter_node"

}  // namespace sailor
